"""What Spark's Python workers compute of Arrow batches: no module of Spark or pandas is known here.

A worker imports what its function's module imports, and each worker of a job does so anew.
"""
