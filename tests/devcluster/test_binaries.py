"""Where programs are looked for, and in which order."""

from pathlib import Path

import pytest

from devcluster.binaries import Sources, ensure, lookup
from devcluster.building import MODULE, build_key
from devcluster.errors import BuildError
from devcluster.toolchain import installed_version, wanted_version


def program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def kubectl(version: str) -> str:
    return f"""#!/bin/sh\necho '{{"clientVersion": {{"gitVersion": "{version}"}}}}'\n"""


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    environment = {
        "TPU_OPERATOR_BIN": str(tmp_path / "ours"),
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "TPU_OPERATOR_CACHE": str(tmp_path / "cache"),
        "PATH": str(tmp_path / "path"),
    }
    return Sources.of(environment, "key")


def test_a_program_is_taken_from_the_first_place_that_has_it(sources: Sources, tmp_path: Path) -> None:
    places = [tmp_path / "path", sources.built, tmp_path / "assets", tmp_path / "ours"]
    for place in places:
        assert lookup("kubectl", sources) != place / "kubectl"
        made = program(place, "kubectl", kubectl("v1.36.0"))
        assert lookup("kubectl", sources) == made


@pytest.mark.parametrize(
    ("version", "want"), [("v1.34.9", False), ("v1.35.0", True), ("v1.37.2", True), ("v1.38.0", False), ("?", False)]
)
def test_a_kubectl_on_path_may_be_one_minor_version_off(
    sources: Sources, tmp_path: Path, version: str, want: bool
) -> None:
    made = program(tmp_path / "path", "kubectl", kubectl(version))
    assert lookup("kubectl", sources) == (made if want else None)


def test_only_kubectl_is_taken_from_path(sources: Sources, tmp_path: Path) -> None:
    program(tmp_path / "path", "etcd")
    assert lookup("etcd", sources) is None


def test_a_file_that_may_not_be_executed_does_not_count(sources: Sources, tmp_path: Path) -> None:
    program(tmp_path / "ours", "etcd").chmod(0o644)
    assert lookup("etcd", sources) is None


@pytest.mark.parametrize(
    ("environment", "want"),
    [
        ({"HOME": "/h"}, "/h/.cache/tpu-operator/devcluster/key"),
        ({"HOME": "/h", "TPU_OPERATOR_CACHE": ""}, "/h/.cache/tpu-operator/devcluster/key"),
        ({"HOME": "/h", "TPU_OPERATOR_CACHE": "/c"}, "/c/devcluster/key"),
    ],
)
def test_the_cache_is_in_the_home_folder_unless_said_otherwise(environment: dict[str, str], want: str) -> None:
    assert Sources.of(environment, "key").built == Path(want)


def test_the_cache_key_is_stable_and_fit_for_a_folder_name() -> None:
    assert build_key() == build_key()
    assert build_key().isalnum()


def test_an_unknown_program_is_refused_before_anything_is_built() -> None:
    with pytest.raises(BuildError, match="unknown program minikube"):
        ensure(["minikube"])


@pytest.mark.parametrize(
    ("printed", "want"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/arm64", (1, 27)),
        ("no version at all", None),
    ],
)
def test_the_version_of_a_go_is_what_it_prints(tmp_path: Path, printed: str, want: tuple[int, ...] | None) -> None:
    assert installed_version(program(tmp_path, "go", f"#!/bin/sh\necho '{printed}'\n")) == want


def test_a_go_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert installed_version(tmp_path / "go") is None
    assert installed_version(program(tmp_path, "go", "#!/bin/sh\nexit 1\n")) is None


def test_the_wanted_go_is_the_one_of_our_go_mod() -> None:
    assert wanted_version((MODULE / "go.mod").read_text()) >= (1, 26)
    with pytest.raises(BuildError):
        wanted_version("module x\n")
