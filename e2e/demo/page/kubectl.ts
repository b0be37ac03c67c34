import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../api/meta.js';
import type { JsonPatchOperation } from '../../../kube/client.js';
import { NAMESPACES, NODES } from '../../../kube/resources.js';
import { until } from '../../../bed/processes/wait.js';
import { callOf, kindCalled, kindOf, refTo } from './kinds.js';
import { get } from './kubectl-get.js';
import { type Arguments, rejectUnknownFlags, type Program } from './program.js';

const apply: Program = {
  prefix: 'kubectl apply',
  isReadOnly: false,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, ['-f']);
    if (args.flags.get('-f') !== '-') throw new Error('the demo supports "kubectl apply" only with -f -');
    const objects = parseAllDocuments(args.input ?? '').map((document) => document.toJS() as KubeObject);
    const placed = objects.map((object) => ({ object, resource: kindOf(object) }));
    return async ({ client, namespace }) => {
      const lines: string[] = [];
      for (const { object, resource } of placed) {
        const ref = refTo(resource, object.metadata.name, namespace);
        const isThere = (await client.find(resource, ref)) !== undefined;
        const body = { ...object, metadata: { ...object.metadata, ...ref } };
        await client.patch(resource, ref, { type: 'apply', object: body, fieldManager: 'demo', force: true });
        lines.push(`${callOf(resource, ref.name)} ${isThere ? 'configured' : 'created'}`);
      }
      return lines.join('\n');
    };
  },
};

const createNamespace: Program = {
  prefix: 'kubectl create namespace',
  isReadOnly: false,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, []);
    const [name = ''] = args.names;
    return async ({ client }) => {
      await client.create(NAMESPACES, { metadata: { name } });
      return `namespace/${name} created`;
    };
  },
};

/** Does not write to the kubeconfig, which may belong to the user. */
const setNamespace: Program = {
  prefix: 'kubectl config set-context --current',
  isReadOnly: false,
  isEmulated: () => true,
  parse(args) {
    rejectUnknownFlags(args, ['--namespace']);
    return (terminal) => {
      terminal.namespace = args.flags.get('--namespace') ?? '';
      return Promise.resolve('Context "demo" modified.');
    };
  },
};

const patch: Program = {
  prefix: 'kubectl patch',
  isReadOnly: false,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, ['--type', '-p']);
    if (args.flags.get('--type') !== 'json') throw new Error('the demo supports only patches of --type=json');
    const operations = JSON.parse(args.flags.get('-p') ?? '') as JsonPatchOperation[];
    const [kind = '', name = ''] = args.names;
    const resource = kindCalled(kind);
    return async ({ client, namespace }) => {
      await client.patch(resource, refTo(resource, name, namespace), { type: 'json', operations });
      return `${callOf(resource, name)} patched`;
    };
  },
};

const WAIT_MS = 120_000;

const wait: Program = {
  prefix: 'kubectl wait',
  isReadOnly: false,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, ['--for', '--timeout']);
    const [kind = '', name = ''] = (args.names[0] ?? '').split('/');
    const resource = kindCalled(kind);
    const [what, type = ''] = (args.flags.get('--for') ?? '').split('=');
    if (what !== 'condition' && what !== 'delete')
      throw new Error(`the demo supports --for=condition=… and --for=delete`);
    return async ({ client, namespace }) => {
      const ref = refTo(resource, name, namespace);
      const isSo = async () => {
        const object = await client.find(resource, ref);
        return what === 'delete' ? object === undefined : hasCondition(object, type);
      };
      await until(`${args.names.join(' ')} to be ${type || 'gone'}`, isSo, { timeoutMs: WAIT_MS });
      return `${callOf(resource, name)} condition met`;
    };
  },
};

function hasCondition(object: KubeObject | undefined, wanted: string): boolean {
  const { conditions = [] } = (object as { status?: { conditions?: { type: string; status: string }[] } }).status ?? {};
  return conditions.some(({ type, status }) => type === wanted && status === 'True');
}

const remove: Program = {
  prefix: 'kubectl delete',
  isReadOnly: false,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, []);
    const [kind = '', ...names] = args.names;
    const resource = kindCalled(kind);
    return async ({ client, namespace }) => {
      const refs = names.map((name) => refTo(resource, name, namespace));
      for (const ref of refs) await client.delete(resource, ref, { propagationPolicy: 'Background' });
      for (const ref of refs) {
        const isGone = async () => (await client.find(resource, ref)) === undefined;
        await until(`${callOf(resource, ref.name)} to be gone`, isGone, { timeoutMs: WAIT_MS });
      }
      return names.map((name) => `${callOf(resource, name).replace('/', ' "')}" deleted`).join('\n');
    };
  },
};

function scheduling(verb: 'cordon' | 'uncordon'): Program {
  return {
    prefix: `kubectl ${verb}`,
    isReadOnly: false,
    isEmulated: () => false,
    parse(args: Arguments) {
      rejectUnknownFlags(args, []);
      const [name = ''] = args.names;
      return async ({ client }) => {
        await client.patch(NODES, { name }, { type: 'merge', body: { spec: { unschedulable: verb === 'cordon' } } });
        return `node/${name} ${verb}ed`;
      };
    },
  };
}

/** Emulates kubectl, as far as the page needs it. */
export const KUBECTL: readonly Program[] = [
  apply,
  createNamespace,
  setNamespace,
  get,
  patch,
  wait,
  remove,
  scheduling('cordon'),
  scheduling('uncordon'),
];
