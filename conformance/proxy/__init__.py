"""A proxy before a real cluster that flags replies which no correct coordinator could give.

`watching` judges exchanges without sockets, `relay` carries the bytes. What is judged is read by
the suite's own codec; a reply is passed on whatever is thought of it.
"""
