"""The models of the application: keys, indexes, a CHECK, documents and arrays."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Category(models.Model):
    name = models.CharField(max_length=50, unique=True)


class Product(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    category = models.ForeignKey(Category, on_delete=models.CASCADE, related_name="products")
    title = models.CharField(max_length=100, db_index=True)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    attributes = models.JSONField(default=dict)
    tags = ArrayField(models.CharField(max_length=20), default=list)
    created = models.DateTimeField()
    weight = models.FloatField(null=True)

    class Meta:
        constraints = (models.CheckConstraint(condition=models.Q(price__gte=0), name="price_is_positive"),)
        indexes = (models.Index(fields=["-created"], name="product_created"),)
