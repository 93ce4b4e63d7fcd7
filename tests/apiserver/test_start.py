"""What a process finds out before it starts to serve."""

from __future__ import annotations

import pytest

from tpu_operator.config import OperatorConfig
from tpu_operator.controller.app import refuse_missing_apis
from tpu_operator.errors import InvalidInput
from tpu_operator.kube.client import Client
from tpu_operator.kube.credentials import load_credentials

pytestmark = pytest.mark.apiserver


async def test_a_batch_scheduler_whose_api_is_not_served_is_refused_with_what_to_do(apiserver) -> None:
    async with Client(await load_credentials(str(apiserver.kubeconfig))) as client:
        with pytest.raises(InvalidInput, match=r"scheduling\.volcano\.sh/v1beta1 is not served.*unset it"):
            await refuse_missing_apis(client, OperatorConfig(batch_scheduler="volcano"))


@pytest.mark.parametrize("scheduler", ["", "yunikorn", "kai-scheduler"])
async def test_without_an_api_of_its_own_nothing_is_asked(scheduler: str) -> None:
    await refuse_missing_apis(None, OperatorConfig(batch_scheduler=scheduler))  # type: ignore[arg-type]
