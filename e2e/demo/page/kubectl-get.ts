import { resourcePath } from '../../../kube/resource.js';
import { kindCalled, refTo } from './kinds.js';
import { type Action, type Arguments, rejectUnknownFlags, type Program } from './program.js';

/** The API server's answer to a request for a table. */
interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[] }[];
}

const AS_TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const JSON_PATH = /^jsonpath=\{((?:\.\w+)+)\}$/;

export const get: Program = {
  prefix: 'kubectl get',
  isReadOnly: true,
  isEmulated: () => false,
  parse(args) {
    rejectUnknownFlags(args, ['-l', '-o', '--field-selector']);
    const output = args.flags.get('-o') ?? '';
    const [, path] = JSON_PATH.exec(output) ?? [];
    if (path !== undefined) return readField(args, path.slice(1).split('.'));
    if (!['', 'wide'].includes(output))
      throw new Error(`the demo does not support -o ${output}: use wide or jsonpath={.a.b}`);
    return readTable(args, output === 'wide');
  },
};

function readField({ names: [kind = '', name = ''] }: Arguments, path: readonly string[]): Action {
  const resource = kindCalled(kind);
  return async ({ client, namespace }) => {
    let value: unknown = await client.get(resource, refTo(resource, name, namespace));
    for (const field of path) value = (value as Record<string, unknown> | undefined)?.[field];
    return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  };
}

function readTable({ names: [kind = '', ...names], flags }: Arguments, isWide: boolean): Action {
  const resource = kindCalled(kind);
  const query = { labelSelector: flags.get('-l'), fieldSelector: flags.get('--field-selector') };
  return async ({ client, namespace }) => {
    const targets = names.length > 0 ? names.map((name) => ({ namespace, name })) : [{ namespace }];
    const tables = await Promise.all(
      targets.map((target) =>
        client.transport.request({
          method: 'GET',
          path: resourcePath(resource, resource.namespaced ? target : { ...target, namespace: undefined }),
          query: 'name' in target ? undefined : query,
          accept: AS_TABLE,
        }),
      ),
    );
    return textOf(tables as Table[], { isWide, namespace: resource.namespaced ? namespace : undefined });
  };
}

function textOf(
  tables: readonly Table[],
  { isWide, namespace }: { isWide: boolean; namespace: string | undefined },
): string {
  const columns = (tables[0]?.columnDefinitions ?? []).map(({ name, priority }, index) => ({ name, priority, index }));
  const shown = columns.filter(({ priority }) => isWide || priority === 0);
  const rows = tables
    .flatMap((table) => table.rows)
    .map(({ cells }) => shown.map(({ index }) => cellText(cells[index])));
  if (rows.length === 0)
    return namespace === undefined ? 'No resources found' : `No resources found in ${namespace} namespace.`;
  const all = [shown.map(({ name }) => name.toUpperCase()), ...rows];
  const widths = shown.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lineOf = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ');
  return all.map((row) => lineOf(row).trimEnd()).join('\n');
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}
