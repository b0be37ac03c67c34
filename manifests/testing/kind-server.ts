import { join } from 'node:path';
import { expect } from 'chai';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll, readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { requestErrorOf } from '../../test/request-error.js';
import { EMPTY_SERVER } from './shared-server.js';

/** Prepares a kube-apiserver with one kind of Holdfast, and nothing else, before the tests of a suite. */
export function useServerWithKind(suite: Mocha.Suite, kind: Resource, onStart: (plane: ControlPlane) => void): void {
  suite.timeout(20_000);
  EMPTY_SERVER.use(suite, async (plane) => {
    await createAll(plane.client, await readManifests(join(MANIFESTS, 'crds', `${kind.plural}.yaml`)));
    await until(`${kind.plural} are served`, () => plane.client.list(kind));
    onStart(plane);
  });
}

/** @param words parts of the message of the schema; undefined if the attempt must succeed */
export async function expectSchemaResult(
  attempt: Promise<unknown>,
  words: readonly string[] | undefined,
): Promise<void> {
  if (words === undefined) {
    await attempt;
    return;
  }
  const { message } = await requestErrorOf(attempt);
  for (const word of words) expect(message).to.include(word);
  // a CEL rule that reads an absent field fails with this text instead of its message
  expect(message).not.to.match(/evaluation error|no such key/);
}

/** What `kubectl get` shows of all objects of a kind that has no namespace. */
export async function readTable({ transport }: Client, { group, version, plural }: Resource) {
  const table = (await transport.request({
    method: 'GET',
    path: `/apis/${group}/${version}/${plural}`,
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
  })) as { columnDefinitions: { name: string; priority: number }[]; rows: { cells: unknown[] }[] };
  return {
    /** Without `-o wide`. */
    shown: table.columnDefinitions.filter(({ priority }) => priority === 0).map(({ name }) => name),
    all: table.columnDefinitions.map(({ name }) => name),
    rows: table.rows.map(({ cells }) => cells),
  };
}
