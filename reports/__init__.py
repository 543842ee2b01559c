"""Reports of traces and sweeps by Spark; `load` opens the tables of a finished one."""

from coordinator_sim_reports.report_tables import ReportTables, load

__all__ = ["ReportTables", "load"]
