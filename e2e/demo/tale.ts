import type { IPAMClaim } from '../../api/ipam-claim.js';
import { controllerOf } from '../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod-interface.js';
import type { Pod } from '../../api/pod.js';
import type { Story } from '../story/story.js';
import type { Narrator } from './narrator.js';

const VM = 'web';
const CLAIM = 'web.data';

/** The life of one VM with two secondary networks, told step by step with the objects as they are. */
export async function tellTale(story: Story, narrator: Narrator): Promise<void> {
  await defineNetworks(story, narrator);
  const claim = await createVm(story, narrator);
  await start(story, narrator);
  await stop(story, narrator, claim);
  await restart(story, narrator, claim);
  await migrate(story, narrator, claim);
  await remove(story, narrator);
}

async function defineNetworks(story: Story, narrator: Narrator): Promise<void> {
  narrator.chapter('A network admin defines two networks');
  await story.network('blue');
  await story.network('green', { persistent: false });
  narrator.show('NAD blue', '"allowPersistentIPs": true');
  narrator.show('NAD green', '"allowPersistentIPs": false');
}

async function createVm(story: Story, narrator: Narrator): Promise<IPAMClaim> {
  narrator.chapter(`A VM owner creates VM ${VM}: interface data on blue, interface guest on green`);
  await story.createVm(VM, { data: 'blue', guest: 'green' }, { running: false });
  const claim = await story.claim(CLAIM);
  const owner = controllerOf(claim);
  narrator.show(
    'IPAMClaim',
    `${claim.metadata.namespace ?? ''}/${claim.metadata.name}  uid ${claim.metadata.uid ?? ''}`,
  );
  narrator.show('  spec', JSON.stringify(claim.spec));
  narrator.show('  owner', `${owner?.kind ?? ''} ${owner?.name ?? ''}`);
  narrator.show('  finalizer', claim.metadata.finalizers?.join(' ') ?? '');
  const names = await story.claimNames();
  narrator.check('the interface on the persistent network has a claim, the other has none', names.join() === CLAIM);
  return claim;
}

async function start(story: Story, narrator: Narrator): Promise<void> {
  narrator.chapter('The VM starts');
  await story.start(VM);
  await showLaunchers(story, narrator);
  await checkReferences(story, narrator, 'its launcher pod points at the claim');
}

async function stop(story: Story, narrator: Narrator, claim: IPAMClaim): Promise<void> {
  narrator.chapter('The VM stops, and starts again');
  await story.stop(VM);
  narrator.show('VMI and launcher', 'gone');
  await checkSame(story, narrator, claim, 'the claim is still there');
  await story.start(VM);
  await showLaunchers(story, narrator);
  await checkSame(story, narrator, claim, 'and still the same one');
  await checkReferences(story, narrator, 'the new launcher pod points at it');
}

async function restart(story: Story, narrator: Narrator, claim: IPAMClaim): Promise<void> {
  narrator.chapter('The VM restarts');
  await story.restart(VM);
  await showLaunchers(story, narrator);
  await checkSame(story, narrator, claim, 'the claim is the same');
  await checkReferences(story, narrator, 'the new launcher pod points at it');
}

async function migrate(story: Story, narrator: Narrator, claim: IPAMClaim): Promise<void> {
  narrator.chapter('The VM migrates to another node while it runs');
  await story.migrate(VM, 'Succeeded', async () => {
    const both = await story.migrations.bothReferences(VM);
    await showLaunchers(story, narrator);
    const shared = both.length === 2 && both.every((references) => references[podInterfaceName('data')] === CLAIM);
    narrator.check('source and target show the same claim', shared);
  });
  narrator.show('migration', 'Succeeded');
  await showLaunchers(story, narrator);
  await checkSame(story, narrator, claim, 'the claim is the same');
}

async function remove(story: Story, narrator: Narrator): Promise<void> {
  narrator.chapter('The VM owner deletes the VM');
  await story.deleteVm(VM, 'Background');
  await story.gone(VM);
  narrator.show('VM, VMI and launcher', 'gone');
  await story.waitForClaims([]);
  narrator.check('the claim went with it', (await story.claimNames()).length === 0);
}

async function showLaunchers(story: Story, narrator: Narrator): Promise<void> {
  for (const pod of await story.launchers(VM)) {
    narrator.show(`pod ${pod.metadata.name}`, `on ${pod.spec?.nodeName ?? 'no node yet'}`);
    for (const element of elements(pod)) narrator.show('  network element', element);
  }
}

function elements(pod: Pod): string[] {
  const list = JSON.parse(pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '[]') as object[];
  return list.map((element) => JSON.stringify(element));
}

async function checkReferences(story: Story, narrator: Narrator, promise: string): Promise<void> {
  const [only] = await story.references(VM);
  const right = only?.[podInterfaceName('data')] === CLAIM && only[podInterfaceName('guest')] === undefined;
  narrator.check(promise, right);
}

async function checkSame(story: Story, narrator: Narrator, claim: IPAMClaim, promise: string): Promise<void> {
  narrator.check(promise, (await story.claim(CLAIM)).metadata.uid === claim.metadata.uid);
}
