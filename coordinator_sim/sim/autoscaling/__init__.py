"""Decisions of autoscalers: Kubernetes' HorizontalPodAutoscaler, and KEDA's Kafka scaler.

Functions and small tables, without a clock: instants come in as arguments. Nothing here reads
offsets, waits, or starts a pod; `sim/kubernetes` does.
"""
