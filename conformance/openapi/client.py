"""Moves a task over the board with the client that openapi-python-client has generated: URL and TOKEN are the arguments."""

import importlib
import pkgutil
import sys

import adjutant_client.api as api
from adjutant_client import AuthenticatedClient, models


def operation(name):
    """The module of an operation, whatever subject it stands under."""
    for module in pkgutil.walk_packages(api.__path__, api.__name__ + "."):
        if module.name.endswith("." + name):
            return importlib.import_module(module.name)
    raise SystemExit(f"there is no operation {name}")


def main(url, token):
    client = AuthenticatedClient(base_url=f"{url}/api/v1", token=token)
    added = operation("post_tasks").sync(client=client, body=models.Add(title="By a generated client", id="g-1"))
    assert added.id == "g-1", added
    for move in [{"to": "ASSIGNED", "assigneeIds": ["ann"]}, {"to": "CANCELED"}]:
        move = models.Move.from_dict(move)
        moved = operation("post_tasks_task_transitions").sync("g-1", client=client, body=move)
        assert getattr(moved, "success", False), moved
    task = operation("get_tasks_task").sync("g-1", client=client)
    print("the task of the generated Python client is", task.status)


main(*sys.argv[1:])
