"""Work for libraries that pickle by value; run as a script, prints results as JSON.

python real_jobs.py stock|cloudpickle|both: with nothing, or with us in the place of cloudpickle, or of pickle too.
"""

import json
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "stock"
if __name__ == "__main__" and MODE != "stock":
    import quickpickle

    quickpickle.install(pickle=MODE == "both", children=True)

SCALE = 3


class Account:
    """Travels by value, as everything that a script defines."""

    def __init__(self, n):
        self.n = n

    def times(self, x):
        return self.n * x * SCALE


def kind_of_cloudpickle():
    """Whether it is we or not, in whatever process this runs."""
    return getattr(sys.modules["cloudpickle"], "__standing_in__", "cloudpickle")


def main():
    import concurrent.futures
    import multiprocessing

    import dask
    import distributed
    import joblib
    import loky

    account = Account(5)
    results = {}
    where = set()

    work = joblib.Parallel(n_jobs=2)
    results["joblib"] = work(joblib.delayed(lambda i: account.times(i) + SCALE)(i) for i in range(20))

    executor = loky.get_reusable_executor(max_workers=2)
    results["loky"] = list(executor.map(lambda i: account.times(i) - 1, range(20)))
    results["loky instance"] = executor.submit(lambda a: a, account).result().times(7)
    where.update(executor.map(lambda _: kind_of_cloudpickle(), range(4)))
    executor.shutdown()

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results["multiprocessing"] = pool.map(abs, range(-20, 0))
    context = multiprocessing.get_context("forkserver")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        results["concurrent.futures"] = list(pool.map(abs, range(-5, 5)))

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        results["distributed"] = client.gather(client.map(lambda i: account.times(i) + 2, range(20)))
        results["distributed instance"] = client.submit(lambda a: a, account).result().times(2)
        results["dask"] = dask.delayed(lambda a, b: account.times(a) + b)(2, 3).compute()
        where.update(client.run(kind_of_cloudpickle).values())

    print(json.dumps({"results": results, "workers have": sorted(where)}))


if __name__ == "__main__":
    main()
