"""Views kept up to date: each barrier begins an epoch, each epoch computes the changes of all views."""
