"""What must be seen on the wire of a client, by area; `registry.py` beside it joins the modules."""
