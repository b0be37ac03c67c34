import { join } from 'node:path';
import { expect } from 'chai';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';
import { readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import type { StructuralSchema } from '../testing/structural-schema.js';

interface Definition {
  spec: {
    group: string;
    scope: string;
    names: Record<'kind' | 'plural', string> & { shortNames: string[] };
    versions: { name: string; schema: { openAPIV3Schema: StructuralSchema } }[];
  };
}

const KINDS: { resource: Resource; shortName: string }[] = [
  { resource: ADDRESS_POOLS, shortName: 'apool' },
  { resource: ADDRESS_LEASES, shortName: 'alease' },
  { resource: ADDRESS_BLOCKS, shortName: 'ablock' },
];

/** All schemas of an object's own fields, with their paths. */
function fieldsOf(schema: StructuralSchema, path = ''): [string, StructuralSchema][] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]): [string, StructuralSchema][] => [
    [`${path}.${name}`, property],
    ...fieldsOf(property, `${path}.${name}`),
  ]);
  const { items, additionalProperties: values } = schema;
  if (values !== undefined) return [...below, [`${path}[]`, values], ...fieldsOf(values, `${path}[]`)];
  if (items === undefined) return below;
  return [...below, [`${path}[]`, items], ...fieldsOf(items, `${path}[]`)];
}

function isBounded({ type, maxLength, maxItems, maximum, enum: values, format, ...map }: StructuralSchema): boolean {
  switch (type) {
    case 'string':
      return maxLength !== undefined || values !== undefined || format === 'date-time';
    case 'array':
      return maxItems !== undefined;
    case 'integer':
      return maximum !== undefined || format === 'int64';
    default:
      return (
        type === 'boolean' ||
        (type === 'object' && (map.additionalProperties === undefined || map.maxProperties !== undefined))
      );
  }
}

describe('the kinds of Holdfast', () => {
  for (const { resource, shortName } of KINDS) {
    describe(resource.kind, () => {
      let definition: Definition['spec'];
      let schema: StructuralSchema;

      before(async () => {
        const [found] = await readManifests(join(MANIFESTS, 'crds', `${resource.plural}.yaml`));
        definition = (found as unknown as Definition).spec;
        const [version] = definition.versions;
        expect(version?.name).to.equal(resource.version);
        schema = version!.schema.openAPIV3Schema;
      });

      it('have the names that the code uses', () => {
        const { group, scope, names } = definition;
        expect({ group, scope }).to.deep.equal({ group: resource.group, scope: 'Cluster' });
        expect(names).to.deep.include({
          kind: resource.kind,
          plural: resource.plural,
          shortNames: [shortName, `${shortName}s`],
        });
      });

      it('describe every field', () => {
        const silent = fieldsOf(schema)
          .filter(([path, { description }]) => !path.endsWith('[]') && (description ?? '').length < 10)
          .map(([path]) => path)
          .filter((path) => !/^\.(apiVersion|kind|metadata)/.test(path));
        expect(silent).to.deep.equal([]);
      });

      it('limit the length of every string and list', () => {
        const open = fieldsOf(schema).filter(([, field]) => !isBounded(field));
        const own = open.map(([path]) => path).filter((path) => !/^\.(apiVersion|kind|metadata)$/.test(path));
        expect(own).to.deep.equal([]);
      });
    });
  }
});
