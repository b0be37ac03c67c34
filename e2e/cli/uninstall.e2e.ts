import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import { qualifiedName } from '../../cli/forbidden.js';
import { KEPT_POLICY, OWN_KINDS } from '../../cli/uninstall/plan.js';
import type { Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import { CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { createAll, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { type BedWithHoldfast, onBed } from '../../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { deleteBase, installWorkloads, objectsOfHoldfast, reinstall } from '../../bed/story/kubectl/uninstall.js';
import { environment } from '../../bed/story/hooks.js';
import { KubectlPlugin, type PluginResult } from '../../bed/story/kubectl/kubectl-plugin.js';
import { serviceAccountClient } from '../../bed/story/users/service-account.js';
import { Story } from '../../bed/story/story.js';

const CLUSTER_ROLE_BINDING = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'e2e-uninstall' },
};
/** The policy that stays is removed with everything, and a bed cannot restart its API server at no cost: another policy replaces it. */
const OTHER_POLICY = 'e2e-configmap-informer';

if (onBed) {
  describe('A cluster administrator who is not in system:masters', () => {
    let bed: BedWithHoldfast;
    let story: Story;
    let administrator: Client;
    let kubeconfig: string;

    before('install Holdfast with its workloads, and run a VM', async () => {
      bed = environment().bed!;
      story = await Story.begin(environment());
      await installWorkloads(bed);
      const account = { namespace: story.namespace, name: 'administrator' };
      administrator = await serviceAccountClient(bed, account);
      kubeconfig = await bed.serviceAccountKubeconfig(account.namespace, account.name);
      await story.addresses.createNetwork('blue', ['10.75.13.0/24']);
      await story.runVm('vm1', { data: 'blue' });
      await story.addresses.waitForIPs('vm1.data');
    });

    after('install Holdfast again for other tests', async () => {
      await reinstall(bed);
      await bed.client.delete(resourceOf({ ...CLUSTER_ROLE_BINDING }), CLUSTER_ROLE_BINDING.metadata);
      for (const resource of KEPT_POLICY.kinds) await bed.client.delete(resource, { name: OTHER_POLICY });
      await administrator.transport.close();
      await story.end();
    });

    it('checks nothing while the rights are missing', async () => {
      const { exitCode, stderr } = await uninstall();
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

    it('reads what is installed, who uses it and how to remove it, and removes nothing', async () => {
      // not the data of earlier stories, which ends
      const [before, data] = [await othersThanData(), await stateOfVm()];
      const result = await uninstall();
      expectSuccess(result);
      expect(result.stdout)
        .to.include('DaemonSet holdfast-agents/holdfast-agent')
        .and.include(`VM ${story.namespace}/vm1`)
        .and.include('kubectl delete -k <your overlay>');
      expect(await othersThanData()).to.include.members(before);
      expect(await stateOfVm()).to.deep.equal(data);
    });

    it('deletes all objects of the base at once while the processes run, as kubectl delete does, and loses nothing', async () => {
      const before = await stateOfVm();
      await deleteBase(bed);
      expect(await stateOfVm()).to.deep.equal(before);
      expect(await othersThanData()).to.deep.equal([
        ...OWN_KINDS.map((kind) => `CustomResourceDefinition ${qualifiedName(kind)}`).sort(),
        `ValidatingAdmissionPolicy ${KEPT_POLICY.name}`,
        `ValidatingAdmissionPolicyBinding ${KEPT_POLICY.name}`,
      ]);

      await installWorkloads(bed);
      await expectParametersAreRead();
      await story.stop('vm1');
      await story.start('vm1');
      const after = await stateOfVm();
      expect(after.claims).to.deep.equal(before.claims);
      expect(after.leases).to.deep.equal(before.leases);
      await story.runVm('vm2', { data: 'blue' });
      await story.addresses.waitForIPs('vm2.data');
    });

    it('removes everything when neither processes nor VMs use addresses any more, and leaves no object of Holdfast', async () => {
      const [policy, binding] = await readManifests(join(MANIFESTS, 'crds', 'configmap-informer.yaml'));
      const metadata = { name: OTHER_POLICY };
      await createAll(bed.client, [
        { ...policy!, metadata },
        { ...binding!, metadata, spec: { ...(binding!.spec as object), policyName: OTHER_POLICY } },
      ]);
      await expectRefusal('still installed', 'kubectl delete -k');
      expect(bed.controller.running, 'the controller runs').to.equal(true);
      await deleteBase(bed);
      await expectRefusal(`VM ${story.namespace}/vm1`);

      await Promise.all([story.stop('vm1'), story.stop('vm2')]);
      expectSuccess(await uninstall('--everything', '--yes'));
      expect(await objectsOfHoldfast(bed.client)).to.deep.equal([]);
      expect(await story.claimNames()).to.deep.equal([]);
    });

    function uninstall(...flags: string[]): Promise<PluginResult> {
      return new KubectlPlugin(kubeconfig, ['uninstall', ...flags]).result;
    }

    async function expectRefusal(...words: string[]): Promise<void> {
      const { exitCode, stderr } = await uninstall('--everything', '--yes');
      expect({ exitCode, stderr }).to.have.property('exitCode', 1);
      for (const word of words) expect(stderr).to.include(word);
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
