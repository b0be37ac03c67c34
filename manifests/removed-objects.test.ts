import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Context } from 'mocha';
import type { Manifest } from '../bed/control-plane/objects.js';
import { readInstallation } from '../bed/holdfast/manifests.js';
import { previousInstallation } from '../bed/holdfast/release.js';
import { reportSkipped } from '../test/report-skipped.js';

const PAGE = 'docs/how-to/upgrade.md';

/** The commands that delete the objects which only the older installation has. */
function deleteCommands(older: readonly Manifest[], newer: readonly Manifest[]): string[] {
  const left = new Set(newer.map(commandFor));
  return older.map(commandFor).filter((command) => !left.has(command));
}

function commandFor({ kind, metadata: { name, namespace } }: Manifest): string {
  const scope = namespace === undefined ? '' : ` -n ${namespace}`;
  return `kubectl${scope} delete ${kind.toLowerCase()} ${name}`;
}

/** The page without the section about the way back, and that section. */
async function readSections(): Promise<{ forward: string; back: string }> {
  const sections = (await readFile(PAGE, 'utf8')).split(/^(?=## )/m);
  const isBack = (section: string) => section.startsWith('## Go back');
  return { forward: sections.filter((section) => !isBack(section)).join(''), back: sections.filter(isBack).join('') };
}

/** The commands of a page that delete one object each. */
function commandsIn(text: string): string[] {
  return text.match(/^kubectl(?: -n [a-z-]+)? delete [a-z]+ holdfast-[a-z-]+$/gm) ?? [];
}

describe('Objects that an upgrade or the way back leaves', () => {
  it(`of the previous release alone are deleted by the commands in ${PAGE}`, async function () {
    const previous = await readPrevious(this);
    const commands = deleteCommands(previous, await readInstallation());
    expect(commandsIn((await readSections()).forward)).to.have.members(commands);
  });

  it(`of this version alone are deleted by the commands for the way back in ${PAGE} if they run processes`, async function () {
    const previous = await readPrevious(this);
    const workloads = (await readInstallation()).filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet');
    expect(commandsIn((await readSections()).back)).to.have.members(deleteCommands(workloads, previous));
  });

  it('are found by kind, namespace and name, also if another object has the same name', async () => {
    const current = await readInstallation();
    const removed = current.filter(({ metadata }) => metadata.name === 'holdfast-agent');
    const rest = current.filter((object) => !removed.includes(object));
    const commands = deleteCommands(current, rest);
    expect(commands).to.include('kubectl -n holdfast-agents delete daemonset holdfast-agent');
    expect(commands).to.include('kubectl delete clusterrole holdfast-agent');
    expect(commands).to.have.length(removed.length);
    expect(commandsIn(['```', ...commands, '```'].join('\n'))).to.deep.equal(commands);
  });
});

/** Skips the test if the history does not contain the previous release. */
async function readPrevious(test: Context): Promise<Manifest[]> {
  const previous = await previousInstallation();
  if (typeof previous !== 'string') return previous;
  reportSkipped(`not tested with the previous release: ${previous}`);
  return test.skip();
}
