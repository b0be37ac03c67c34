import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { asReadError } from '../cni/agent/cni-error.js';
import { StatusError } from '../kube/errors.js';
import { createAllMetrics } from '../test/repository/reference.js';
import { ROOT } from '../test/source-files.js';
import { ALERT_SCENARIOS } from './testing/alert-scenarios.js';
import { type Alert, PROMCHECK_TIMEOUT_MS, type Scenario, promcheck } from './testing/promcheck.js';
import { type Rule, readRules } from './testing/rules.js';

const RUNBOOKS = join(ROOT, 'docs', 'runbooks');
/** Guests, or the owners of NADs and VMs, can make them fire. */
const CAUSED_BY_TENANTS = [
  ...['HoldfastDerivedPoolFull', 'HoldfastClaimsWaiting', 'HoldfastCniRequestsFailing'],
  ...['HoldfastAddressConflict', 'HoldfastForeignDHCPServer', 'HoldfastTrafficNotOfClaim', 'HoldfastSyncsFailing'],
  'HoldfastGuestsLeftOut',
];
/** A metric of kube-apiserver. */
const REJECTIONS = 'apiserver_admission_webhook_rejection_count';
const SECTIONS = ['## Meaning', '## Impact', '## Diagnosis', '## Mitigation'];

describe('the alerts', function () {
  let rules: readonly Rule[];
  let firing: Map<string, readonly Alert[]>;
  let firingWithStandby: Map<string, readonly Alert[]>;
  let quiet: Map<string, readonly Alert[]>;
  let problems: readonly string[];

  before(async function () {
    this.timeout(PROMCHECK_TIMEOUT_MS);
    const shipped = await readRules();
    ({ rules } = shipped);
    const cases = Object.entries(ALERT_SCENARIOS);
    const standby = await readStandbyValues();
    const scenarios = cases.flatMap(([, { fires, isQuiet, at, quietAt = at }]) => [
      { series: fires, at },
      { series: withStandby(fires, standby), at },
      { series: isQuiet, at: quietAt },
    ]);
    const found = await promcheck({ rules: shipped.text, scenarios });
    ({ problems } = found);
    const alertsOf = (kind: number) =>
      new Map(cases.map(([name], index) => [name, found.alerts[3 * index + kind] ?? []]));
    [firing, firingWithStandby, quiet] = [alertsOf(0), alertsOf(1), alertsOf(2)];
  });

  it('are rules that Prometheus accepts, and each is tested', () => {
    expect(problems).to.deep.equal([]);
    expect(rules.map(({ alert }) => alert).sort()).to.deep.equal(Object.keys(ALERT_SCENARIOS).sort());
  });

  for (const [name, { says }] of Object.entries(ALERT_SCENARIOS)) {
    it(`${name} fires when it should, says what is wrong and for whom, and does not fire otherwise`, () => {
      const [found, ...others] = (firing.get(name) ?? []).filter(({ labels }) => labels.alertname === name);
      expect(others).to.deep.equal([]);
      expect(found?.annotations.description).to.include(says);
      expect(found?.annotations.summary).to.not.include('{{');
      expect((quiet.get(name) ?? []).map(({ labels }) => labels.alertname)).to.not.include(name);
    });
  }

  it('fire if each ADD of a node waits for something: the agent may not read leases, and no pool is full', async () => {
    const denied = new StatusError({
      request: 'GET /leases',
      status: 403,
      reason: 'Forbidden',
      message: 'is forbidden',
    });
    const series = {
      'holdfast_cni_request_duration_seconds_count{command="ADD",code="0",instance="a",node="n1"}': '50x60',
      [`holdfast_cni_request_duration_seconds_count{command="ADD",code="${asReadError(denied).code}",instance="a",node="n1"}`]:
        '0+10x60',
    };
    const { text } = await readRules();
    const { alerts } = await promcheck({ rules: text, scenarios: [{ series, at: '1h' }] });
    expect(alerts.flat().map(({ labels }) => labels.alertname)).to.deep.equal(['HoldfastCniRequestsFailing']);
  });

  it('fire if API servers cannot call a webhook, or each round of a loop fails', async () => {
    const series = {
      [`${REJECTIONS}{name="launcher-pods.ipam.holdfast.dev",error_type="calling_webhook_error"}`]: '0+1x60',
      'holdfast_sync_duration_seconds_count{loop="capacity",result="done",namespace="h"}': '50x60',
      'holdfast_sync_duration_seconds_count{loop="capacity",result="transient",namespace="h"}': '0+1x60',
    };
    const { text } = await readRules();
    const { alerts } = await promcheck({ rules: text, scenarios: [{ series, at: '1h' }] });
    const names = alerts.flat().map(({ labels }) => labels.alertname);
    expect(names).to.deep.equal(['HoldfastWebhookFailing', 'HoldfastSyncsFailing']);
  });

  it('say that a certificate has expired, and that lines of the audit log are lost', async () => {
    const series = {
      'holdfast_certificate_expiration_timestamp_seconds{server="ipam",certificate="serving"}': '3600x120',
      'holdfast_audit_lines_lost_total{namespace="h"}': '0x90 7x30',
    };
    const { text } = await readRules();
    const { alerts } = await promcheck({ rules: text, scenarios: [{ series, at: '2h' }] });
    expect(alerts.flat().map(({ annotations }) => annotations.summary)).to.deep.equal([
      'A certificate of the server ipam has expired.',
      'The audit log of ipam cannot be written, or lines of it are lost.',
    ]);
  });

  it('see the first increase of a counter, because it has a value at the start of its process', async () => {
    const text = await createAllMetrics().registry.metrics();
    for (const series of [
      ...['orphan', 'surplus', 'no-pool'].map((leak) => `leases_collected_total{leak="${leak}"}`),
      ...['webhook', 'ipam'].map(
        (server) => `${server}_review_duration_seconds_count{operation="CREATE",result="failed"}`,
      ),
      'cni_request_duration_seconds_count{command="ADD",code="0"}',
      ...['server', 'conflict'].map((kind) => `responder_observations_total{pool="",kind="${kind}"}`),
    ])
      expect(text.replaceAll(/pool="[^"]*"/g, 'pool=""')).to.include(`holdfast_${series} 0\n`);
  });

  it('fire also if another replica has never led and reports the values of its start', () => {
    for (const [name, alerts] of firingWithStandby)
      expect(alerts.map(({ labels }) => labels.alertname)).to.include(name);
  });

  it('have a severity, a summary, a description, and the URL of their page', () => {
    for (const { alert, labels, annotations } of rules) {
      expect(labels.severity, alert).to.be.oneOf(['critical', 'warning', 'info']);
      expect(Object.keys(annotations), alert).to.have.members(['summary', 'description', 'runbook_url']);
      expect(annotations.runbook_url, alert).to.match(new RegExp(`/docs/runbooks/${alert}\\.md$`));
    }
  });

  it('are never critical if tenants can cause them: their administrators need not wake up', () => {
    const severities = new Map(rules.map(({ alert, labels }) => [alert, labels.severity]));
    for (const alert of CAUSED_BY_TENANTS) expect(severities.get(alert), alert).to.be.oneOf(['warning', 'info']);
  });

  it('are never critical about one process of several, or one node', () => {
    for (const { alertname, severity, instance } of [...firing.values()].flat().map(({ labels }) => labels))
      if (severity === 'critical') expect(instance, alertname).to.equal(undefined);
  });

  it('have a runbook page each, with all sections, and there is no other page', async () => {
    const pages = (await readdir(RUNBOOKS)).filter((file) => file !== 'README.md');
    expect(pages.sort()).to.deep.equal(rules.map(({ alert }) => `${alert}.md`).sort());
    const list = await readFile(join(RUNBOOKS, 'README.md'), 'utf8');
    for (const page of pages) {
      const lines = (await readFile(join(RUNBOOKS, page), 'utf8')).split('\n');
      expect(lines[0]).to.equal(`# ${page.slice(0, -3)}`);
      expect(lines.filter((line) => line.startsWith('## '))).to.deep.equal(SECTIONS);
      expect(list).to.include(`(${page})`);
    }
  });

  it('and their pages use metrics that exist', async () => {
    const { registry } = createAllMetrics();
    const known = new Set(registry.getMetricsAsArray().map(({ name }) => name));
    const pages = (await readdir(RUNBOOKS)).map((file) => readFile(join(RUNBOOKS, file), 'utf8'));
    const queries = (await Promise.all(pages)).flatMap((page) =>
      [...page.matchAll(/```promql\n(.*?)```/gs)].map(([, query = '']) => query),
    );
    const { metrics } = await promcheck({ expressions: [...rules.map(({ expr }) => expr), ...queries] });
    const used = new Set(
      metrics.flat().map((name) => (name === REJECTIONS ? 'up' : name.replace(/_(bucket|sum|count)$/, ''))),
    );
    expect([...used].filter((name) => name !== 'up' && !known.has(name))).to.deep.equal([]);
  });
});

/** The values, by metric, that a process reports at its start. */
async function readStandbyValues(): Promise<ReadonlyMap<string, number>> {
  const metrics = await createAllMetrics().registry.getMetricsAsJSON();
  return new Map(
    metrics.flatMap(({ name, values }) =>
      values.filter(({ labels }) => Object.keys(labels).length === 0).map(({ value }) => [name, value] as const),
    ),
  );
}

function withStandby(series: Scenario['series'], values: ReadonlyMap<string, number>): Scenario['series'] {
  const standby = Object.keys(series).flatMap((key) => {
    const value = values.get(key.replace(/\{.*/, ''));
    const name = key.replace(/(,instance="[^"]*")?\}/, ',instance="standby"}');
    return value === undefined ? [] : [[name, `${value}x1000`] as const];
  });
  return { ...series, ...Object.fromEntries(standby) };
}

describe('promcheck', () => {
  it('finds what violates the conventions of Prometheus in the metrics of a process: nothing', async () => {
    const text = await createAllMetrics().registry.metrics();
    const { problems } = await promcheck({ metrics: text.replaceAll(/^(# \w+ |)(nodejs|process)_.*\n/gm, '') });
    expect(problems).to.deep.equal([]);
    const wrong = await promcheck({ metrics: '# TYPE holdfast_requests counter\nholdfast_requests 1\n' });
    expect(wrong.problems.join()).to.include('holdfast_requests');
  });
});
