"""Requirements of Trogdor, as cases played over its REST: in virtual time, and on real daemons."""
