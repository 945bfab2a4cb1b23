"""What tests of workloads ask of a cluster of controllers."""

from typing import Any

from controllers_cluster import Cluster, Document

LABELS = {"app": "web"}


def a_template(image: str = "one", **spec: Any) -> Document:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def names(cluster: Cluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in cluster.pods())


def end(cluster: Cluster, name: str, phase: str) -> None:
    cluster.api.change("pods", f"ns/{name}", {"status": {"phase": phase}})
    cluster.settle()


def condition(document: Document, kind: str) -> tuple[str, str]:
    """Its status and reason; both are empty where there is none."""
    found = next((c for c in document["status"].get("conditions", ()) if c["type"] == kind), {})
    return found.get("status", ""), found.get("reason", "")


def a_job(cluster: Cluster, name: str = "work", **spec: Any) -> Document:
    body = {
        "metadata": {"name": name},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "selector": {"matchLabels": LABELS},
            "template": a_template(restartPolicy="Never"),
            **spec,
        },
    }
    made = cluster.api.create("jobs.batch", body, "ns")
    cluster.settle()
    return made


def indexes(cluster: Cluster) -> list[str]:
    """Those of the pods that live, in order."""
    live = [pod for pod in cluster.of("pods") if pod["status"]["phase"] in ("Pending", "Running")]
    return sorted(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in live)
