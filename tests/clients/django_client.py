"""Django: its own migrations, an application's models made and changed by migrations, the ORM, inspectdb."""

from __future__ import annotations

import datetime as dt
import io
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import django
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, migrations, models, transaction

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
        }
    },
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.postgres", "shop"],
    USE_TZ=True,
    TIME_ZONE="UTC",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()


from shop.models import Category, Product  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def shop() -> Iterator[None]:
    call_command("migrate", run_syncdb=True, verbosity=0)
    yield
    connection.close()


@pytest.fixture
def categories() -> Iterator[list[Category]]:
    made = [Category.objects.create(name="books"), Category.objects.get_or_create(name="toys")[0]]
    moment = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    Product.objects.bulk_create(
        Product(
            category=made[i % 2], title=f"P{i}", price=Decimal(i) / 4, attributes={"k": i, "n": {"z": [1, i]}},
            tags=["x", f"t{i % 3}"], created=moment + dt.timedelta(days=i),
        )
        for i in range(30)
    )  # fmt: skip
    yield made
    Product.objects.all().delete()
    Category.objects.all().delete()


def test_own_migrations_are_all_there() -> None:
    listed = io.StringIO()
    call_command("showmigrations", stdout=listed)
    assert "[X] 0012_alter_user_first_name_max_length" in listed.getvalue()
    assert "[ ]" not in listed.getvalue()
    user = apps.get_model("auth", "User").objects.create_user("u", "a@b.c", "secret")
    assert user.check_password("secret")


def test_queries(categories: list[Category]) -> None:
    found = Product.objects
    assert found.filter(attributes__k__gte=25, attributes__n__z__1=29).count() == 1
    assert found.filter(attributes__has_key="k").count() == 30
    assert found.filter(tags__contains=["t1"]).count() == 10
    assert found.filter(tags__overlap=["t1", "t2"], tags__len=2).count() == 20
    assert found.filter(title__icontains="p1", title__regex=r"^P\d+$").count() == 11
    sums = Category.objects.annotate(n=models.Count("products"), s=models.Sum("products__price")).order_by("name")
    assert [(c.name, c.n, c.s) for c in sums] == [("books", 15, Decimal("52.50")), ("toys", 15, Decimal("56.25"))]
    months = found.annotate(m=models.functions.TruncMonth("created")).values("m").annotate(n=models.Count("id"))
    assert [(row["m"].month, row["n"]) for row in months.order_by("m")] == [(3, 30)]
    best = found.filter(category=models.OuterRef("pk")).order_by("-price").values("title")[:1]
    best_of = Category.objects.annotate(top=models.Subquery(best)).order_by("name").values_list("top", flat=True)
    assert list(best_of) == ["P28", "P29"]
    rank = models.Window(models.functions.RowNumber(), partition_by=["category"], order_by=["price", "title"])
    assert sorted(found.annotate(r=rank).filter(r=1).values_list("title", flat=True)) == ["P0", "P1"]
    assert found.order_by("category", "-price").distinct("category").count() == 2
    assert sum(1 for _ in found.iterator(chunk_size=7)) == 30


def test_changes(categories: list[Category]) -> None:
    found = Product.objects
    assert found.filter(price__gt=5).update(price=models.F("price") * 2) == 9
    changed = list(found.order_by("title")[:3])
    for product in changed:
        product.title += "!"
    assert found.bulk_update(changed, ["title"]) == 3
    assert found.filter(title__endswith="!").count() == 3
    with pytest.raises(IntegrityError), transaction.atomic():
        found.create(category=categories[0], title="bad", price=-1, created=dt.datetime.now(dt.UTC))
    with pytest.raises(ValueError), transaction.atomic():
        Category.objects.create(name="rolled back")
        raise ValueError
    with transaction.atomic():
        Category.objects.create(name="outer")
        with pytest.raises(ValueError), transaction.atomic():
            Category.objects.create(name="inner")
            raise ValueError
    names = Category.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["books", "outer", "toys"]
    gone, _ = categories[0].delete()
    assert gone == 16


def test_operations_of_migrations() -> None:
    """What migrations do to columns that indexes read, one after another."""
    operations: list[Any] = [
        migrations.AlterField("product", "title", models.CharField(max_length=200, db_index=True)),
        migrations.AlterField("product", "weight", models.FloatField(default=1.5)),
        migrations.AlterField("product", "weight", models.CharField(max_length=30, null=True)),
        migrations.AddField("product", "stock", models.IntegerField(default=3)),
        migrations.RenameField("product", "stock", "in_stock"),
        migrations.AlterField("product", "in_stock", models.BigIntegerField(null=True)),
        migrations.AddIndex("product", models.Index(fields=["price", "title"], name="product_price")),
        migrations.RenameIndex("product", old_name="product_price", new_name="product_by_price"),
        migrations.RemoveIndex("product", "product_by_price"),
        migrations.RemoveConstraint("product", "price_is_positive"),
        migrations.AlterModelTable("product", "shop_goods"),
        migrations.AlterModelTable("product", "shop_product"),
    ]
    state = migrations.state.ProjectState()
    for model in (Category, Product):
        state.add_model(migrations.state.ModelState.from_model(model))
    for operation in operations:
        after = state.clone()
        operation.state_forwards("shop", after)
        with connection.schema_editor() as editor:
            operation.database_forwards("shop", editor, state, after)
        state = after
    shown = io.StringIO()
    call_command("inspectdb", "shop_product", stdout=shown)
    for line in ("title = models.CharField(max_length=200)", "in_stock = models.BigIntegerField(blank=True, null=True)",
                 "weight = models.CharField(max_length=30, blank=True, null=True)"):  # fmt: skip
        assert line in shown.getvalue()
