/** Renders the generated tables of docs/reference, and TypeScript of the CRDs. `npm run reference` writes them, and a test compares them. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ADDRESS_STATES } from '../../addressing/address-states.js';
import { CLAIM_CONDITIONS, POOL_CONDITIONS } from '../../api/conditions.js';
import { EVENT_REASONS } from '../../api/event-reasons.js';
import {
  IGNORED_KEYS,
  OBJECT_KEYS,
  PASSED_KEYS,
  POOL_FIELDS,
  RANGE_KEYS,
  SUBNET_KEYS,
  WHEREABOUTS_KEYS,
} from '../../api/networks/ipam-keys.js';
import * as names from '../../api/names.js';
import { createPluginFolderMetrics } from '../../cni/agent/installation/plugin-folder.js';
import { createGuardMetrics } from '../../cni/agent/guard/metrics.js';
import { createAgentMetrics, createNodeBlockMetrics, createPodLeaseMetrics } from '../../cni/agent/metrics.js';
import { createControllerMetrics } from '../../controller/claims/reports.js';
import { createAuditMetrics } from '../../ipam/audit/audit-log.js';
import { createBlockMetrics } from '../../ipam/blocks/metrics.js';
import { createCapacityMetrics } from '../../capacity/metrics.js';
import { createGuestMetrics } from '../../guest/metrics.js';
import { createCollectorReport } from '../../ipam/collector/report.js';
import { IpamMetrics } from '../../ipam/metrics.js';
import { createValidationMetrics } from '../../ipam/validation/webhook.js';
import { createMonitoringMetrics } from '../../monitoring/serve-metrics.js';
import { COMMANDS } from '../../cli/commands/all.js';
import { CHART_README, chartReadme } from '../../manifests/testing/chart-readme.js';
import { type StructuralSchema, readKinds } from '../../manifests/testing/structural-schema.js';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { AGENT_SETTINGS, INSTALL_SETTINGS } from '../../process/config/agent-config.js';
import {
  CAPACITY_SETTINGS,
  CONTROLLER_SETTINGS,
  IPAM_SETTINGS,
  WEBHOOK_SETTINGS,
} from '../../process/config/config.js';
import { createResponderMetrics } from '../../guest/responder-process/metrics.js';
import { GUEST_SETTINGS, RESPONDER_SETTINGS } from '../../process/config/guest-config.js';
import { createMetrics, type Metrics } from '../../process/metrics.js';
import type { Setting } from '../../process/config/setting.js';
import { createWebhookMetrics } from '../../webhook/metrics.js';
import { generatedFromCrds } from './crd-types.js';
import { ROOT } from '../source-files.js';

/** The first cell of each row, the key, and the cells after it without those that people write. */
type Rows = Iterable<readonly [string, readonly string[]]>;

export const SETTINGS: Readonly<Record<string, readonly Setting<unknown>[]>> = {
  controller: Object.values(CONTROLLER_SETTINGS),
  webhook: Object.values(WEBHOOK_SETTINGS),
  ipam: Object.values(IPAM_SETTINGS),
  capacity: Object.values(CAPACITY_SETTINGS),
  guest: Object.values(GUEST_SETTINGS),
  responder: Object.values(RESPONDER_SETTINGS),
  'install-plugin': Object.values(INSTALL_SETTINGS),
  agent: Object.values(AGENT_SETTINGS),
};

/** Keys that only manifests know. */
export const MANIFEST_KEYS = [
  'ipam.holdfast.dev/cni-bin-dir',
  'ipam.holdfast.dev/claim-references',
  'ipam.holdfast.dev/metrics',
];

/** Constants of api/names.ts that are keys of metadata. */
const METADATA_KEY = /(_LABEL|_ANNOTATION|_FINALIZER|^CLAIM_|^LEASE_|^POOL_|^LAUNCHER_CREATOR|_PREFIX)/;

/** The generated tables: page, heading above the table, rows. */
const TABLES: readonly (readonly [page: string, heading: string, rows: () => Rows | Promise<Rows>])[] = [
  ['flags.md', '# Flags', flags],
  ['metrics.md', '## All metrics', metrics],
  ['annotations.md', '# Labels, annotations and finalizers', metadataKeys],
  ['crd-fields.md', '# CRD fields', crdFields],
  ['ipam-keys.md', '## Keys of Holdfast', ipamKeys],
  ['ipam-keys.md', '## Keys of whereabouts and CNI', otherIpamKeys],
  ['conditions.md', '## Conditions of a claim', () => conditions(CLAIM_CONDITIONS)],
  ['conditions.md', '## Conditions of a pool', () => conditions(POOL_CONDITIONS)],
  ['events.md', '## All events', events],
  ['kubectl-holdfast.md', '## States of addresses', addressStates],
  ['kubectl-holdfast.md', '## Commands', commands],
];

/** Each generated page and file as it is, and as it should be. */
export async function renderReference(): Promise<{ path: string; present: string; expected: string }[]> {
  const read = (path: string) => readFile(join(ROOT, path), 'utf8');
  const pages = [...new Set(TABLES.map(([page]) => page))].map(async (page) => {
    const path = `docs/reference/${page}`;
    const present = await read(path);
    let expected = present;
    for (const [of, heading, rows] of TABLES) if (of === page) expected = withRows(expected, heading, await rows());
    return { path, present, expected };
  });
  const files = Object.entries(await generatedFromCrds()).map(async ([path, expected]) => {
    return { path, present: await read(path).catch(() => ''), expected };
  });
  return Promise.all([...pages, ...files]);
}

/** Replaces the rows of the first table below a heading. If the table has one more column than the rows, people write that one: it is kept. */
export function withRows(page: string, heading: string, rows: Rows): string {
  const lines = page.split('\n');
  const begin = lines.indexOf(heading);
  const start = lines.findIndex((line, at) => at > begin && /^\|[-|]+\|$/.test(line)) + 1;
  const columns = lines[start - 1]!.split('|').length - 2;
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  const kept = new Map(
    lines.slice(start, start + length).map((line) => {
      const cells = line.slice(2, -2).split(' | ');
      return [cells[0], cells.at(-1)?.trim()];
    }),
  );
  const rendered = [...rows].map(([key, cells]) => {
    const written = columns > 1 + cells.length ? [kept.get(key) ?? ''] : [];
    return `| ${[key, ...cells, ...written].join(' | ')} |`;
  });
  return [...lines.slice(0, start), ...rendered, ...lines.slice(start + length)].join('\n');
}

function flags(): Rows {
  const processes = Object.entries(SETTINGS);
  return new Map(
    processes
      .flatMap(([, settings]) => settings)
      .map((setting): [string, string[]] => {
        const { flag, description, defaultValue, defaultText = JSON.stringify(defaultValue ?? '') } = setting;
        const using = processes.filter(([, settings]) => settings.some((other) => other.flag === flag));
        const serving = using.filter(([name]) => name !== 'install-plugin').length;
        const where = serving === processes.length - 1 ? 'all' : using.map(([name]) => name).join(', ');
        const requiring = using.filter(([, settings]) =>
          settings.some((each) => each.flag === flag && each.isRequired),
        );
        const required = requiring.map(([name]) => name).join(', ');
        const fallback = defaultText.replace(/["[\]]/g, '') || 'none';
        const partly = required === '' ? fallback : `${fallback}; required by ${required}`;
        const shown = requiring.length === using.length ? 'required' : partly;
        const other = setting.alternativeVariable === undefined ? '' : `; or from ${setting.alternativeVariable}`;
        return [`\`--${flag}\``, [where, cell(shown + other), cell(description)]];
      }),
  );
}

function conditions(rows: typeof CLAIM_CONDITIONS | typeof POOL_CONDITIONS): Rows {
  return rows.map(({ type, status, reasons, meaning }) => {
    const codes = reasons.map((reason) => `\`${reason}\``);
    return [`\`${type}\` ${status}`, [codes.join(', '), cell(meaning)]];
  });
}

function events(): Rows {
  return Object.values(EVENT_REASONS).map(({ reason, when, todo }) => [`\`${reason}\``, [cell(when), cell(todo)]]);
}

function addressStates(): Rows {
  const states = Object.entries(ADDRESS_STATES);
  return states.map(([state, { letter, text, meaning }]) => [`\`${state}\``, [`\`${letter}\``, text, meaning]]);
}

/** Commands of kubectl holdfast. */
function commands(): Rows {
  return new Map(
    COMMANDS.map(({ usage, description, options = [], common = {} }): [string, string[]] => {
      const own = options.map((option) => `\`${option.flags}\`: ${option.description}`);
      const shared = [
        ...(common.namespace === undefined ? [] : [`\`-n\`: ${common.namespace}`]),
        ...(common.allNamespaces === true ? ['`-A`'] : []),
        ...(common.output === true ? ['`-o`'] : []),
      ];
      return [`\`${cell(usage)}\``, [cell(description), cell([...own, ...shared].join('. '))]];
    }),
  );
}

/** Makes the metrics of all processes in one registry. */
export function createAllMetrics(): Metrics {
  const metrics = createMetrics('all', '0');
  createMonitoringMetrics(metrics);
  createControllerMetrics(metrics);
  createWebhookMetrics(metrics);
  new IpamMetrics(metrics, systemClock, 0);
  createAuditMetrics(metrics);
  createBlockMetrics(metrics);
  createCollectorReport({ metrics, events: { event: () => undefined }, log: silentLogger });
  createValidationMetrics(metrics);
  createPodLeaseMetrics(metrics);
  createNodeBlockMetrics(metrics);
  createAgentMetrics(metrics);
  createGuardMetrics(metrics);
  createPluginFolderMetrics(metrics);
  createCapacityMetrics(metrics);
  createResponderMetrics(metrics, '');
  createGuestMetrics(metrics);
  return metrics;
}

async function metrics(): Promise<Rows> {
  const { registry } = createAllMetrics();
  const ours = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith('holdfast_'));
  return new Map(
    ours.map(({ name, help, type }) => {
      const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { labelNames?: string[] };
      const labels = labelNames.map((label) => `\`${label}\``).join(', ');
      return [`\`${name}\``, [String(type), labels, cell(help)]];
    }),
  );
}

/** Keys of labels, annotations and finalizers. */
function metadataKeys(): Rows {
  const keys = Object.entries(names).filter(([constant]) => METADATA_KEY.test(constant));
  const values = [...keys.map(([, value]) => value), ...MANIFEST_KEYS].filter((value) => typeof value === 'string');
  return new Map(values.filter((value) => /^[a-z0-9.-]+\//.test(value)).map((value) => [`\`${value}\``, []]));
}

async function crdFields(): Promise<Rows> {
  const rows = new Map<string, string[]>();
  for (const { kind, schema } of await readKinds())
    for (const part of ['spec', 'status']) addFields(rows, `${kind} ${part}`, schema.properties?.[part] ?? {});
  return rows;
}

function addFields(rows: Map<string, string[]>, path: string, schema: StructuralSchema): void {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const type = field.items === undefined ? field.type : `${field.items.type ?? ''}[]`;
    const required = schema.required?.includes(name) === true ? ', required' : '';
    rows.set(`\`${path}.${name}\``, [`${type ?? ''}${required}`, cell(field.description ?? '')]);
    // The fields of a condition are the same everywhere.
    if (name !== 'conditions')
      addFields(rows, `${path}.${name}${field.items === undefined ? '' : '[]'}`, field.items ?? field);
  }
}

/** Keys of a NAD's `ipam` object that describe a pool. The CRD says what its fields mean. */
async function ipamKeys(): Promise<Rows> {
  const fields = new Map<string, string[]>();
  const { schema } = (await readKinds()).find(({ kind }) => kind === 'AddressPool')!;
  addFields(fields, 'ipam', schema.properties?.spec ?? {});
  const isKey = (path: string) =>
    path === 'subnets' ||
    SUBNET_KEYS.some((key) => path === `subnets[].${key}`) ||
    (POOL_FIELDS.some((key) => path === key || path.startsWith(`${key}.`)) && !path.startsWith('guard.allow'));
  const own = Object.entries(OBJECT_KEYS).map(([key, row]) => ipamRow(key, row));
  const ofPools = [...fields].filter(([key]) => isKey(key.slice('`ipam.'.length, -1)));
  return [...own, ...ofPools.map(([key, cells]): [string, string[]] => [key, cells.map((text) => ofNad(key, text))])];
}

/** A NAD may leave the subnets to an administrator's pool, and its derived pool can move to another address space. */
function ofNad(key: string, text: string): string {
  if (key === '`ipam.subnets`') return text.replace(', required', '');
  if (key !== '`ipam.addressSpace`') return text;
  return text.replace(
    'It cannot be changed.',
    'If it changes, the pool [moves](../how-to/pools.md#share-or-separate-addresses).',
  );
}

function otherIpamKeys(): Rows {
  const ignored = IGNORED_KEYS.map((key) => `\`ipam.${key}\``).join(', ');
  const rows = Object.entries({ ...RANGE_KEYS, ...WHEREABOUTS_KEYS, ...PASSED_KEYS });
  return [...rows.map(([key, row]) => ipamRow(key, row)), [ignored, ['any', 'Have no effect.']]];
}

function ipamRow(key: string, { type, meaning }: { type: string; meaning: string }): [string, string[]] {
  return [`\`ipam.${key}\``, [type, cell(meaning)]];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s+/g, ' ').trim();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { path, expected } of await renderReference()) await writeFile(join(ROOT, path), expected);
  await writeFile(CHART_README, await chartReadme());
}
