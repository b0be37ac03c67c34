import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll, resourceOf } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { attributesOf, can } from './access-reviews.js';
import { ServerState } from './server-state.js';

type Install = (plane: ControlPlane) => Promise<void> | void;

/** A kube-apiserver for all suites with equal needs. Each of them finds what was installed and nothing else. */
export class SharedServer {
  readonly #install: Install;
  #running: Promise<{ plane: ControlPlane; installed: ServerState }> | undefined;
  #stopsAtEnd = false;
  #resets = 0;

  constructor(install: Install = () => undefined) {
    this.#install = install;
  }

  /** Prepares the server before the tests of a suite. It stops after the last suite of the process. */
  use(suite: Mocha.Suite, setUp: Install): void {
    const acquire = () => this.#acquire();
    before(async function () {
      this.timeout(15 * 60_000); // the first run builds the API server
      await setUp(await acquire());
    });
    if (!this.#stopsAtEnd) rootOf(suite).afterAll(() => this.#stop());
    this.#stopsAtEnd = true;
  }

  async #acquire(): Promise<ControlPlane> {
    if (this.#running === undefined) {
      this.#running = this.#start();
      return (await this.#running).plane;
    }
    const { plane, installed } = await this.#running;
    const deleted = await installed.restore(plane.client);
    if ([...deleted].some((kind) => kind.endsWith('RoleBinding'))) await this.#untilRightsAreGone(plane.client);
    return plane;
  }

  async #start() {
    const plane = await startControlPlane();
    try {
      await this.#install(plane);
      return { plane, installed: await ServerState.read(plane.client) };
    } catch (error) {
      // a running control plane would keep the tests from ending
      await plane.stop();
      throw error;
    }
  }

  async #stop(): Promise<void> {
    const running = await this.#running?.catch(() => undefined);
    await running?.plane.stop();
  }

  /** Waits until the authorizer has seen the newest bindings. It watches each kind in order, so it has seen all deletions then. */
  async #untilRightsAreGone(client: Client): Promise<void> {
    const account = { namespace: 'default', name: `newest-${++this.#resets}` };
    const apiGroup = 'rbac.authorization.k8s.io';
    const bind = (kind: string, role: string, namespace?: string) => ({
      apiVersion: `${apiGroup}/v1`,
      kind,
      metadata: { name: account.name, ...(namespace !== undefined && { namespace }) },
      roleRef: { apiGroup, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    });
    const bindings = [
      bind('ClusterRoleBinding', 'system:aggregate-to-view'),
      bind('RoleBinding', 'system:aggregate-to-edit', 'default'),
    ];
    await createAll(client, bindings);
    for (const right of [attributesOf('configmaps.', 'list'), attributesOf('configmaps.@default', 'create')])
      await until('the newest bindings are in force', () => can(client, account, right));
    for (const binding of bindings) await client.delete(resourceOf(binding), binding.metadata);
  }
}

function rootOf(suite: Mocha.Suite): Mocha.Suite {
  return suite.parent === undefined ? suite : rootOf(suite.parent);
}

/** A server of which no suite needs more than Kubernetes. */
export const EMPTY_SERVER = new SharedServer();
