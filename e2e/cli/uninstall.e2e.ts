import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import { qualifiedName } from '../../cli/forbidden.js';
import { DAEMON_SETS } from '../../cli/installation.js';
import { KEPT_POLICY, OWN_KINDS } from '../../cli/uninstall/stages.js';
import type { Client } from '../../kube/client.js';
import { isNotFound, messageOf } from '../../kube/errors.js';
import { CONFIG_MAPS, IPAM_CLAIMS, NAMESPACES } from '../../kube/resources.js';
import { type Manifest, createAll, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { type BedWithHoldfast, onBed } from '../../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { MANIFESTS, readKustomization } from '../../bed/holdfast/manifests.js';
import { InstalledWorkloads, objectsOfHoldfast } from '../../bed/story/uninstall.js';
import { environment } from '../../bed/story/hooks.js';
import { KubectlPlugin, type PluginResult } from '../../bed/story/kubectl-plugin.js';
import { serviceAccountClient } from '../../bed/story/service-account.js';
import { Story } from '../../bed/story/story.js';

const CLUSTER_ROLE_BINDING = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'e2e-uninstall' },
};
/** The policy that stays is removed with everything, and a bed cannot restart its API server at no cost: another policy replaces it. */
const OTHER_POLICY = 'e2e-configmap-informer';

if (onBed) {
  describe('A cluster administrator who is not in system:masters', function () {
    this.timeout(120_000);
    let bed: BedWithHoldfast;
    let story: Story;
    let installed: InstalledWorkloads;
    let administrator: Client;
    let kubeconfig: string;

    before('install Holdfast with its workloads, and run a VM', async () => {
      bed = environment().bed!;
      story = await Story.begin(environment());
      installed = await InstalledWorkloads.install(bed);
      const account = { namespace: story.namespace, name: 'administrator' };
      administrator = await serviceAccountClient(bed, account);
      kubeconfig = await bed.serviceAccountKubeconfig(account.namespace, account.name);
      await story.addresses.createNetwork('blue', ['10.75.13.0/24']);
      await story.createVm('vm1', { data: 'blue' });
      await story.waitRunning('vm1');
      await story.addresses.waitForIPs('vm1.data');
    });

    after('install Holdfast again for other tests', async () => {
      await installed.release();
      installed = await InstalledWorkloads.install(bed);
      await installed.release();
      await bed.client.delete(resourceOf({ ...CLUSTER_ROLE_BINDING }), CLUSTER_ROLE_BINDING.metadata);
      for (const resource of KEPT_POLICY.kinds) await bed.client.delete(resource, { name: OTHER_POLICY });
      await administrator.transport.close();
      await story.end();
    });

    it('removes nothing while the rights are missing', async () => {
      const { exitCode, stderr } = await uninstall('--yes');
      expect({ exitCode, stderr }).to.have.property('exitCode', 1);
      expect(stderr).to.include('you may not list').and.to.include('cluster administrator');
      await createAll(bed.client, [
        {
          ...CLUSTER_ROLE_BINDING,
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
          subjects: [{ kind: 'ServiceAccount', namespace: story.namespace, name: 'administrator' }],
        },
      ]);
    });

    it('uninstalls and installs again while a VM keeps its pod, claim and addresses', async () => {
      const before = await stateOfVm();
      const killed = new KubectlPlugin(kubeconfig, ['uninstall', '--yes']);
      const agent = { namespace: 'holdfast-agents', name: 'holdfast-agent' };
      await until('the agents are removed', async () => (await bed.client.find(DAEMON_SETS, agent)) === undefined);
      killed.kill();
      await killed.result;
      expectSuccess(await uninstall('--yes'));
      expect(bed.controller.running || bed.webhook.running || bed.ipam.running, 'processes that run').to.equal(false);
      expect(await stateOfVm()).to.deep.equal(before);
      expect(await othersThanData()).to.deep.equal([
        ...OWN_KINDS.map((kind) => `CustomResourceDefinition ${qualifiedName(kind)}`).sort(),
        `ValidatingAdmissionPolicy ${KEPT_POLICY.name}`,
        `ValidatingAdmissionPolicyBinding ${KEPT_POLICY.name}`,
      ]);

      await installed.release();
      installed = await InstalledWorkloads.install(bed);
      await expectParametersAreRead();
      await story.stop('vm1');
      await story.start('vm1');
      const after = await stateOfVm();
      expect(after.claims).to.deep.equal(before.claims);
      expect(after.leases).to.deep.equal(before.leases);
      await story.createVm('vm2', { data: 'blue' });
      await story.waitRunning('vm2');
      await story.addresses.waitForIPs('vm2.data');
    });

    it('may delete all objects of the base at once while the processes run, as kubectl delete does, and loses nothing', async () => {
      const before = await stateOfVm();
      const objects = await readKustomization(join(MANIFESTS, 'base'));
      await Promise.all(objects.map((object) => deleteIfPresent(object)));
      await until('the namespaces are gone', async () => {
        const names = (await bed.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name);
        return !names.some((name) => [HOLDFAST_NAMESPACE, 'holdfast-agents'].includes(name));
      });
      expect(bed.controller.running || bed.webhook.running || bed.ipam.running, 'processes that run').to.equal(false);
      expect(await stateOfVm()).to.deep.equal(before);
      await installed.release();
      installed = await InstalledWorkloads.install(bed);
      await expectParametersAreRead();
      await story.restart('vm1');
      const after = await stateOfVm();
      expect(after.claims).to.deep.equal(before.claims);
      expect(after.leases).to.deep.equal(before.leases);
    });

    it('removes everything when no VM uses addresses any more, and leaves no object of Holdfast', async () => {
      const [policy, binding] = await readManifests(join(MANIFESTS, 'crds', 'configmap-informer.yaml'));
      const metadata = { name: OTHER_POLICY };
      await createAll(bed.client, [
        { ...policy!, metadata },
        { ...binding!, metadata, spec: { ...(binding!.spec as object), policyName: OTHER_POLICY } },
      ]);
      const refused = await uninstall('--everything', '--yes');
      expect(refused.exitCode).to.equal(1);
      expect(refused.stderr).to.include(`VM ${story.namespace}/vm1`);
      expect(bed.controller.running, 'the controller runs').to.equal(true);

      await Promise.all([story.stop('vm1'), story.stop('vm2')]);
      expectSuccess(await uninstall('--everything', '--yes'));
      expect(await objectsOfHoldfast(bed.client)).to.deep.equal([]);
      expect(await story.claimNames()).to.deep.equal([]);
    });

    function uninstall(...flags: string[]): Promise<PluginResult> {
      return new KubectlPlugin(kubeconfig, ['uninstall', ...flags]).result;
    }

    async function deleteIfPresent(object: Manifest): Promise<void> {
      const options = { propagationPolicy: 'Background' } as const;
      await bed.client.delete(resourceOf(object), object.metadata, options).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }

    /** The API objects of the VM that must not change. */
    async function stateOfVm() {
      const [vmi, launchers, claims, leases] = await Promise.all([
        story.waitRunning('vm1'),
        story.launchers('vm1'),
        bed.client.list(IPAM_CLAIMS, { namespace: story.namespace }),
        story.addresses.leases(),
      ]);
      return {
        pods: [vmi.metadata.uid, ...launchers.map(({ metadata }) => metadata.uid)],
        claims: claims.items.filter(({ metadata }) => metadata.name === 'vm1.data').map(identityOfClaim),
        leases: [...leases.values()].map(identityOfLease),
      };
    }

    /** The objects of Holdfast except pools, leases and claims. */
    async function othersThanData(): Promise<string[]> {
      return (await objectsOfHoldfast(bed.client)).filter(
        (name) => !/^(Address(Pool|Lease|Block)|IPAMClaim) /.test(name),
      );
    }

    /** A change of the policies' parameters takes effect: the API server still reads ConfigMaps. */
    async function expectParametersAreRead(): Promise<void> {
      const change = { type: 'merge' as const, body: { metadata: { annotations: { [CLAIM_OWNER_UID]: 'another' } } } };
      const write = () => administrator.patch(IPAM_CLAIMS, story.ref('vm1.data'), change, { dryRun: true });
      await until('the policies are in force', async () =>
        (await write().then(() => '', messageOf)).includes('claimWriters'),
      );
      await setClaimWriters(`system:serviceaccount:${story.namespace}:administrator`);
      await until('the administrator may change claims', write);
      await setClaimWriters('');
    }

    async function setClaimWriters(claimWriters: string): Promise<void> {
      const policies = { namespace: HOLDFAST_NAMESPACE, name: 'holdfast-policies' };
      await bed.client.patch(CONFIG_MAPS, policies, { type: 'merge', body: { data: { claimWriters } } });
    }
  });
}

function expectSuccess({ exitCode, stdout, stderr }: PluginResult): void {
  expect(exitCode, `${stdout}\n${stderr}`).to.equal(0);
}

function identityOfClaim({ metadata: { uid, finalizers, ownerReferences }, spec, status }: IPAMClaim) {
  return { uid, finalizers, ownerReferences, spec, ips: status?.ips };
}

function identityOfLease({ metadata: { name, uid }, spec: { owner } }: AddressLease) {
  return { name, uid, owner };
}
