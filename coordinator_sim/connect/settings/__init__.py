"""Settings of workers and connectors: names, defaults and validation as Connect's ConfigDef."""
