import { join } from 'node:path';
import { type Manifest, readManifests } from '../../bed/control-plane/objects.js';
import { ROOT, findFiles } from '../../test/source-files.js';

/** The part of an OpenAPI v3 schema that Kubernetes calls structural. */
export interface StructuralSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly required?: readonly string[];
  readonly items?: StructuralSchema;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly maximum?: number;
  readonly minimum?: number;
}

/** A CustomResourceDefinition with its only version. */
export interface ShippedKind {
  /** The name of the CRD. */
  readonly name: string;
  readonly kind: string;
  readonly group: string;
  readonly schema: StructuralSchema;
}

type Definition = Manifest & {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: StructuralSchema } }[];
  };
};

/** Reads `manifests/crds`, also the kind of claims. */
export async function readKinds(): Promise<ShippedKind[]> {
  const files = await findFiles('.yaml', join(ROOT, 'manifests/crds'));
  const objects = (await Promise.all(files.map((path) => readManifests(join(ROOT, path))))).flat();
  const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition') as Definition[];
  return definitions.map(({ metadata: { name }, spec: { group, names, versions } }) => ({
    ...{ name, group, kind: names.kind },
    schema: versions[0]!.schema.openAPIV3Schema,
  }));
}
