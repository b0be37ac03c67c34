import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { messageOf } from '../../kube/errors.js';
import { PODS } from '../../kube/resources.js';
import { type Panel, queriesOf, queryOf, readDashboard } from '../../monitoring/testing/dashboard.js';
import { readRules } from '../../monitoring/testing/rules.js';
import { cniBinFolder } from '../../bed/network/open-pod-networks.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf, SERVICE_ACCOUNTS, requestToken } from '../../bed/control-plane/service-accounts.js';
import { until } from '../../bed/processes/wait.js';
import { type BedWithHoldfast, startBedWithHoldfast } from '../../bed/environment.js';
import { Story } from '../../bed/story/story.js';
import { GuestLoad } from './guest-load.js';
import { drawDashboard } from './picture.js';
import { Prometheus, ensurePrometheus } from './prometheus.js';

// make dashboard: a real Prometheus scrapes a bed under load, and each query of the dashboard must find data.
// DASHBOARD_PICTURE=1 draws the panels for the documentation.

const NAMESPACE = 'holdfast-system';
/** More VMs than the pool has addresses. */
const VMS = 8;

/** What the picture shows: about the time of a run. */
const MINUTES = 3;
const PICTURE = join(import.meta.dirname, '..', '..', 'docs', 'images', 'dashboard.svg');

const say = (line: string) => console.log(line);

const command = await ensurePrometheus(say);
const bed = await startBedWithHoldfast(say);
const folder = await mkdtemp(join(tmpdir(), 'holdfast-dashboard-'));
process.exitCode = 1; // until all queries have data
try {
  const { controller, webhook, ipam, agents } = bed;
  const processes = [controller, webhook, ipam, ...(agents?.all ?? [])];
  const env = { HOLDFAST_METRICS_SECURE: 'true', HOLDFAST_CNI_BIN_DIR: cniBinFolder(bed) };
  await Promise.all(
    processes.map(async (each) => {
      await each.stop();
      await each.start({ env });
    }),
  );
  const guests = await GuestLoad.start(bed, env);
  const targets = [
    ...processes.map(({ name, metricsPort }, index) => ({ job: `${name}-${index}`, port: metricsPort })),
    ...(guests?.targets ?? []),
  ];
  const { text: rules } = await readRules();
  const token = await scraperToken(bed);
  const prometheus = await Prometheus.start(folder, bed.processes, { command, targets, token, rules });
  const story = await Story.begin({ ...bed, bed, stop: () => bed.stop() });
  try {
    await guests?.begin(story);
    await examine(prometheus, story, { hasAgents: agents !== undefined, guests });
    if (process.env.DASHBOARD_PICTURE !== undefined) await draw(prometheus);
  } finally {
    await guests?.stop(story);
    await story.end();
    await prometheus.stop();
  }
} finally {
  await bed.stop();
  await rm(folder, { recursive: true });
}

async function scraperToken({ client }: BedWithHoldfast): Promise<string> {
  const account = { namespace: NAMESPACE, name: 'scraper' };
  await client.create(SERVICE_ACCOUNTS, { metadata: account });
  await createAll(client, [clusterRoleBindingOf(account, 'holdfast-metrics-reader')]);
  return requestToken(client, account);
}

/** Loads Holdfast until each query has had data. */
async function examine(
  prometheus: Prometheus,
  story: Story,
  { hasAgents, guests }: { hasAgents: boolean; guests: GuestLoad | undefined },
): Promise<void> {
  const all = queriesOf(await readDashboard());
  const isExpected = (query: string) =>
    (hasAgents || !/holdfast_(cni|agent)_/.test(query)) && (guests || !/holdfast_(guest|responder)_/.test(query));
  const missing = new Set(all.filter(({ query }) => isExpected(query)));
  await putBlue(story, 0);
  await story.runVm('moving', { data: 'blue' });
  let round = 1;
  try {
    await until(
      'every query to have data',
      async () => {
        await loadOnce(story, round++);
        await guests?.renew();
        for (const each of missing) if ((await prometheus.seriesOf(each.query)) > 0) missing.delete(each);
        return missing.size === 0;
      },
      { timeoutMs: 240_000 },
    );
  } catch (error) {
    say(messageOf(error));
  }
  const failed = [
    ...[...missing].map(({ panel, query }) => `no data: ${panel}: ${query}`),
    ...(await prometheus.failedTargets()),
    ...(await prometheus.failedRules()),
  ];
  for (const each of failed) say(each);
  say(`${String(all.length - missing.size)} of ${String(all.length)} queries of the dashboard have data`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

async function draw(prometheus: Prometheus): Promise<void> {
  const { panels } = await readDashboard();
  const read = async ({ id, targets = [] }: Panel) => {
    const found = targets.map(({ expr, legendFormat }) => prometheus.rangeOf(queryOf(expr), legendFormat, MINUTES));
    return [id, (await Promise.all(found)).flat()] as const;
  };
  const series = new Map(await Promise.all(panels.map(read)));
  await writeFile(
    PICTURE,
    drawDashboard(panels, ({ id }) => series.get(id) ?? []),
  );
  say(`${PICTURE} is drawn`);
}

/** The pool is full in each round: some VMs and pods are refused. */
async function loadOnce(story: Story, round: number): Promise<void> {
  await putBlue(story, round);
  const pod = story.ref(`pod-${String(round)}`);
  const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify([{ name: 'blue' }]) };
  const spec = { containers: [{ name: 'c', image: 'registry.test/c' }], terminationGracePeriodSeconds: 0 };
  await createAll(story.client, [{ apiVersion: 'v1', kind: 'Pod', metadata: { ...pod, annotations }, spec }]);
  const names = Array.from({ length: VMS }, (_, index) => `vm-${String(round)}-${String(index)}`);
  for (const name of names) await story.createVm(name, { data: 'blue' }, { running: name === names[0] });
  await story.migrations.waitEnded(await story.migrations.start('moving'));
  await story.client.delete(PODS, pod, { gracePeriodSeconds: 0 });
  for (const name of names) await story.deleteVm(name, 'Background');
}

/** Changes the NAD, because ipam reviews only changes. */
async function putBlue({ addresses }: Story, round: number): Promise<void> {
  await addresses.createNetwork('blue', ['10.90.0.0/29', 'fd00:90::/64'], { cooldownSeconds: 1 + (round % 2) });
}
