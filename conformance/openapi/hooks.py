"""What schemathesis must not do: end the server that it asks."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path == "/fleet/stop" and isinstance(case.body, dict) and case.body.get("server") is True:
        case.body["server"] = False
