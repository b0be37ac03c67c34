import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Metrics, createMetrics } from './metrics.js';

describe('Metrics', () => {
  it('prefixes every name', async () => {
    const metrics = new Metrics();
    metrics.counter('claims_total', 'Claims.', ['action']).inc({ action: 'create' });
    metrics.gauge('leader', 'Leads.').set(1);
    metrics.histogram('review_seconds', 'Reviews.', { buckets: [1] }).observe(0.5);
    const text = await metrics.registry.metrics();
    expect(text).to.include('holdfast_claims_total{action="create"} 1');
    expect(text).to.include('holdfast_leader 1');
    expect(text).to.include('holdfast_review_seconds_bucket{le="1"} 1');
  });

  it('rejects a name that is already used', () => {
    const metrics = new Metrics();
    metrics.counter('claims_total', 'Claims.');
    expect(() => metrics.counter('claims_total', 'Again.')).to.throw('holdfast_claims_total');
  });

  it('records the metrics of the Kubernetes layer', async () => {
    const { kube, registry } = new Metrics();
    kube.requested('GET', '200', 0.003);
    kube.listed('pods', 0.2);
    kube.watchEnded('pods', 'end');
    kube.watching('pods', () => 2_000);
    kube.handlerFailed('pods');
    kube.queueDepth('claims', 4);
    kube.synced('claims', 'done', 0.01);
    kube.eventDropped('full');
    const text = await registry.metrics();
    for (const line of [
      'holdfast_kube_request_duration_seconds_count{method="GET",code="200"} 1',
      'holdfast_kube_list_duration_seconds_count{resource="pods"} 1',
      'holdfast_kube_watch_ends_total{resource="pods",reason="end"} 1',
      'holdfast_kube_watch_last_progress_timestamp_seconds{resource="pods"} 2',
      'holdfast_kube_handler_failures_total{resource="pods"} 1',
      'holdfast_queue_depth{queue="claims"} 4',
      'holdfast_sync_duration_seconds_count{loop="claims",result="done"} 1',
      'holdfast_kube_events_dropped_total{reason="full"} 1',
    ]) {
      expect(text).to.include(line);
    }
  });

  it('shows the last progress of the watch of a kind that is furthest behind, until it is stopped', async () => {
    const { kube, registry } = new Metrics();
    const name = 'holdfast_kube_watch_last_progress_timestamp_seconds';
    kube.watching('pods', () => 9_000);
    const forget = kube.watching('pods', () => 5_000);
    kube.watching('nodes', () => undefined);
    expect(await registry.metrics())
      .to.include(`${name}{resource="pods"} 5\n`)
      .and.not.include('nodes');
    forget();
    expect(await registry.metrics()).to.include(`${name}{resource="pods"} 9\n`);
  });

  it('shows the longest block of the event loop since the last scrape', async () => {
    const { registry } = createMetrics('agent', '1.2.3');
    const longestBlock = async () =>
      Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await registry.metrics())?.[1]);
    await pause(100);
    const end = performance.now() + 300;
    while (performance.now() < end);
    await pause(100);
    expect(await longestBlock()).to.be.within(0.2, 60);
    await pause(100);
    expect(await longestBlock()).to.be.lessThan(0.2);
  });

  it('reports the version, and the resources that the process uses', async () => {
    const text = await createMetrics('webhook', '1.2.3').registry.metrics();
    expect(text).to.include('holdfast_build_info{process="webhook",version="1.2.3"} 1');
    expect(text).to.include('process_resident_memory_bytes');
  });
});
