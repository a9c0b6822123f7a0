"""The filling of views: jobs, the strategies that fill a view, and how a job is limited, stopped and resumed."""
