"""How the process lives: composition root, handlers, observer, executor, reporter."""
