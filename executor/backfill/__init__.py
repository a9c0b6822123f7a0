"""Views filled: jobs, the strategies that fill a view, and how each is limited, stopped and resumed."""
