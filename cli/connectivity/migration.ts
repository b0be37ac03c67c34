import { labelValue } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import { CLAIM_VM_LABEL } from '../../api/names.js';
import { type Pod, controllingVmi, isTerminal, networkStatuses, reportedIPsOf } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { namespacedResource } from '../../kube/resource.js';
import { IPAM_CLAIMS, PODS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { type CheckReport, reportCheck } from '../doctor/check-report.js';
import { errorOf, warningOf } from '../doctor/finding.js';
import type { TestedNetwork } from './network.js';
import type { TestObjects } from './objects.js';
import { CONNECTIVITY_LABEL } from './pods.js';

const MIGRATION_MS = 300_000;
const NETWORK = 'data';
const CHECK = 'migration';

interface Migration extends KubeObject {
  spec: { vmiName: string };
  status?: { phase?: string };
}
const MIGRATIONS = namespacedResource<Migration>(
  'kubevirt.io/v1',
  'virtualmachineinstancemigrations',
  'VirtualMachineInstanceMigration',
);

interface MigrationDeps {
  readonly client: Client;
  readonly objects: TestObjects;
  readonly run: string;
}

/** Migrates a VM without a disk, and compares addresses. */
export async function checkMigration(
  { network, timeoutMs }: { readonly network: TestedNetwork; readonly timeoutMs: number },
  deps: MigrationDeps,
): Promise<CheckReport> {
  if (!network.isPersistent) return notPersistent(network);
  const { namespace } = deps.objects;
  const name = `holdfast-connectivity-${deps.run}`;
  await deps.objects.create(VIRTUAL_MACHINES, diskless(name, namespace, network, deps.run));
  const found = await migrate(name, timeoutMs, deps);
  if ('kept' in found) return reportCheck(CHECK, found.kept);
  const remedy = `see the events of the VM meanwhile, and whether KubeVirt migrates other VMs`;
  return reportCheck(CHECK, '', [errorOf(CHECK, `VirtualMachine ${namespace}/${name}`, found.problem, remedy)]);
}

async function migrate(
  name: string,
  timeoutMs: number,
  deps: MigrationDeps,
): Promise<{ readonly kept: string } | { readonly problem: string }> {
  const { client, objects, run } = deps;
  const { namespace } = objects;
  const readVmi = () => client.find(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
  const isRunning = (vmi: VirtualMachineInstance | undefined) => vmi?.status?.phase === 'Running';
  const started = await objects.wait(readVmi, isRunning, timeoutMs);
  if (!started.isRight)
    return { problem: `the VM does not run: it is ${started.value?.status?.phase ?? 'not started'}` };
  const before = await claimedAddresses(client, namespace, name);
  if (before.length === 0) return { problem: 'the claim of the VM has no address' };

  const metadata = { name, namespace, labels: { [CONNECTIVITY_LABEL]: run } };
  await objects.create(MIGRATIONS, { metadata, spec: { vmiName: name } });
  const readPhase = async () => (await objects.get(MIGRATIONS, name)).status?.phase;
  const ended = await objects.wait(readPhase, (phase) => phase === 'Succeeded' || phase === 'Failed', MIGRATION_MS);
  if (ended.value !== 'Succeeded') return { problem: `the live migration is ${ended.value ?? 'not begun'}` };
  const nodes = [nodeOf(started.value), nodeOf(await readVmi())];
  const onTarget = await launcherAddresses(client, { namespace, name, node: nodes[1] ?? '' });
  const missing = before.filter((address) => !onTarget.includes(address));
  if (missing.length === 0) return { kept: `a VM migrated from ${nodes.join(' to ')} and kept ${before.join(', ')}` };
  return {
    problem: `the launcher on ${nodes[1] ?? ''} does not have ${missing.join(', ')}, but ${onTarget.join(', ')}`,
  };
}

function nodeOf(vmi: VirtualMachineInstance | undefined): string {
  return vmi?.status?.nodeName ?? 'an unknown node';
}

function notPersistent({ nad }: TestedNetwork): CheckReport {
  const problem = 'does not set allowPersistentIPs, so a VM on it has another address after a migration';
  const object = `NetworkAttachmentDefinition ${nad.namespace}/${nad.name}`;
  return reportCheck(CHECK, '', [warningOf(CHECK, object, problem, 'name another NAD, or leave --migrate out')]);
}

/** A VM whose guest finds nothing to boot. */
function diskless(name: string, namespace: string, { nad }: TestedNetwork, run: string): VirtualMachine {
  const labels = { [CONNECTIVITY_LABEL]: run };
  const spec = {
    runStrategy: 'Always',
    template: {
      metadata: { labels },
      spec: {
        terminationGracePeriodSeconds: 0,
        domain: {
          devices: { interfaces: [{ name: NETWORK, bridge: {} }] },
          resources: { requests: { memory: '128Mi' } },
        },
        networks: [{ name: NETWORK, multus: { networkName: `${nad.namespace}/${nad.name}` } }],
      },
    },
  };
  return { metadata: { name, namespace, labels }, spec } as VirtualMachine;
}

/** Without prefix lengths. */
async function claimedAddresses(client: Client, namespace: string, vm: string): Promise<string[]> {
  const labelSelector = `${CLAIM_VM_LABEL}=${labelValue(vm)}`;
  const { items } = await client.list(IPAM_CLAIMS, { namespace, labelSelector });
  return items.flatMap(({ status }) => status?.ips ?? []).map((ip) => ip.replace(/\/\d+$/, ''));
}

async function launcherAddresses(
  client: Client,
  vm: { readonly namespace: string; readonly name: string; readonly node: string },
): Promise<string[]> {
  const { items } = await client.list(PODS, { namespace: vm.namespace, labelSelector: CONNECTIVITY_LABEL });
  const isTarget = (pod: Pod) =>
    controllingVmi(pod)?.name === vm.name && pod.spec?.nodeName === vm.node && !isTerminal(pod);
  return items.filter(isTarget).flatMap((pod) => networkStatuses(pod).flatMap(reportedIPsOf));
}
