import { expect } from 'chai';
import { createAllMetrics } from './reference.js';

/** Labels whose values are names of objects, and what bounds their number. */
const OBJECT_LABELS: Readonly<Record<string, string>> = {
  'holdfast_guest_responders_wanted_status pool': 'at most --max-responder-pools',
  'holdfast_responder_connected_status pool': 'the one pool of the process',
  'holdfast_responder_dropped_packets_total pool': 'the one pool of the process',
  'holdfast_responder_exchanges_total pool': 'the one pool of the process',
  'holdfast_responder_exchanges_total protocol': 'at most 256 series in a process',
  'holdfast_responder_exchanges_total message': 'at most 256 series in a process',
  'holdfast_responder_guests_left_out pool': 'the one pool of the process',
  'holdfast_responder_observations_total pool': 'the one pool of the process',
  'holdfast_responder_probes_total pool': 'the one pool of the process',
  'holdfast_responder_table_entries pool': 'the one pool of the process',
  'holdfast_responder_table_stale_status pool': 'the one pool of the process',
  'holdfast_ipam_pool_addresses nad_namespace': 'one value for each pool',
  'holdfast_ipam_pool_addresses pool': 'publishMetrics, --max-derived-pool-metrics',
  'holdfast_ipam_pool_available_addresses nad_namespace': 'one value for each pool',
  'holdfast_ipam_pool_available_addresses pool': 'publishMetrics, --max-derived-pool-metrics',
  'holdfast_ipam_pool_capacity_addresses pool': 'publishMetrics, --max-derived-pool-metrics',
  'holdfast_guard_dropped_packets_total nad_namespace':
    'the ports of a node; one value for all derived pools of a namespace',
  'holdfast_guard_dropped_packets_total pool': 'the ports of a node; none for derived pools',
  'holdfast_guard_ports nad_namespace': 'the ports of a node; one value for all derived pools of a namespace',
  'holdfast_guard_ports pool': 'the ports of a node; none for derived pools',
  'holdfast_capacity_free_addresses pool': '--max-published-pools',
  'holdfast_capacity_waiting_pods pool': '--max-published-pools',
};
/** Labels with a few values, which the code chooses. */
const CLOSED_LABELS = new Set(
  'action answer certificate check class code command family kind leak loop method mode name operation outcome process purpose queue reason resource result server source state status step version write'.split(
    ' ',
  ),
);

interface Described {
  readonly name: string;
  readonly type: unknown;
  readonly help: string;
  readonly labels: readonly string[];
}

/** The conventions of Prometheus and KubeVirt for names, and bounds of labels. */
describe('the metrics of all processes', () => {
  let ours: Described[];

  before(async () => {
    const { registry } = createAllMetrics();
    const found = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith('holdfast_'));
    ours = found.map(({ name, type, help }) => {
      const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { labelNames?: string[] };
      return { name, type, help, labels: labelNames };
    });
    expect(ours.length).to.be.greaterThan(50);
  });

  it('have labels with few values, except for names of pools, whose number is bounded', () => {
    const others = ours.flatMap(({ name, labels }) =>
      labels.filter((label) => !CLOSED_LABELS.has(label)).map((label) => `${name} ${label}`),
    );
    expect(others.sort()).to.deep.equal(Object.keys(OBJECT_LABELS).sort());
  });

  it('end in _total exactly if they are counters, and in _duration_seconds if they are histograms of time', () => {
    for (const { name, type } of ours) {
      expect(name.endsWith('_total'), name).to.equal(type === 'counter');
      if (type === 'histogram' && name.includes('seconds')) expect(name).to.match(/_duration_seconds$/);
    }
  });

  it('say in a sentence what they mean', () => {
    for (const { name, help } of ours) expect(help, name).to.match(/^[A-Z1].*\.$/);
  });
});
