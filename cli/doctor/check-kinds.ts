import { type Crd, type JsonSchema, allocatesAddresses } from '../installation.js';
import { CLAIM_CRD, CRD_FIELDS } from './crd-fields.js';
import { type Finding, errorOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const APPLY = 'apply manifests/crds of the version of the processes';

/** Kinds that are missing, not served, or older than the processes. */
export function checkKinds(observed: ObservedCluster): Finding[] {
  const { crds } = observed;
  if (crds === undefined) return [];
  const own = allocatesAddresses(observed) ? Object.keys(CRD_FIELDS) : [];
  return [...own, CLAIM_CRD].flatMap((name) => {
    const crd = crds.find(({ metadata }) => metadata.name === name);
    return crd === undefined
      ? [errorOf('kinds', `CustomResourceDefinition ${name}`, 'does not exist', APPLY)]
      : checkKind(crd);
  });
}

function checkKind(crd: Crd): Finding[] {
  const object = `CustomResourceDefinition ${crd.metadata.name}`;
  const established = crd.status?.conditions?.find(({ type }) => type === 'Established');
  if (established?.status === 'False')
    return [errorOf('kinds', object, `is not served: ${established.message ?? ''}`, APPLY)];
  const served = crd.spec?.versions?.find((version) => version.served === true)?.schema?.openAPIV3Schema;
  const missing = (CRD_FIELDS[crd.metadata.name] ?? []).filter((path) => !hasField(served, path.split('.')));
  if (missing.length === 0) return [];
  const problem = `is older than this version of kubectl holdfast: it has no ${missing.join(', ')}`;
  return [errorOf('kinds', object, `${problem}, so the API server drops these fields`, APPLY)];
}

function hasField(schema: JsonSchema | undefined, [name = '', ...rest]: readonly string[]): boolean {
  const field = schema?.properties?.[name];
  if (field === undefined) return false;
  return rest.length === 0 || hasField(field.items ?? field, rest);
}
