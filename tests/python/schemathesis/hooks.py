"""What the configuration can't say."""

import schemathesis


@schemathesis.hook.apply_to(operation_id="log_out")
def before_call(context, case, kwargs):
    """Logs nobody out: the token ends with its log-out, and other operations need it."""
    case.headers.pop("Authorization", None)
    case.cookies.pop("session", None)
