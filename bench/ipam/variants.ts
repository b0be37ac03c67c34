import type { Manifest } from '../../bed/control-plane/objects.js';
import type { AddressLease } from '../../api/address-lease.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';

/** A copy of the kind AddressLease in a group of its own, with some of its rules and policies. */
export interface LeaseVariant {
  readonly title: string;
  readonly group: string;
  /** It has the policy for agents. */
  readonly hasPolicies: boolean;
  /** The CRD, and the policies with their bindings. */
  readonly objects: readonly Manifest[];
}

/** A copy of one policy and of its binding. */
type PolicyPair = readonly [policy: Manifest, binding: Manifest];
interface BindingSpec {
  policyName?: string;
}

const RULES = 'x-kubernetes-validations';
const OF_AGENTS = 'holdfast-agent-leases';
const GROUP = ADDRESS_LEASES.group;

/**
 * Returns variants of the shipped kind with its policies, from a kind that accepts anything to the shipped ones.
 * @param withParts also variants that lack one rule, one policy, or one validation of a policy
 */
export function leaseVariants(shipped: readonly Manifest[], { withParts }: { withParts: boolean }): LeaseVariant[] {
  const crd = shipped.find(({ metadata }) => metadata.name === `${ADDRESS_LEASES.plural}.${GROUP}`)!;
  const policies = policiesOf(shipped);
  const all: Omit<LeaseVariant, 'group' | 'hasPolicies'>[] = [
    { title: 'bare object', objects: [bare(crd)] },
    { title: 'schema', objects: [withoutRules(crd, () => true)] },
    { title: 'schema and rules', objects: [crd] },
    { title: 'shipped', objects: [crd, ...policies.flat()] },
    ...(withParts ? parts(crd, policies) : []),
  ];
  return all.map(({ title, objects }, n) => {
    const group = `v${String(n)}.bench.holdfast.dev`;
    return {
      title,
      group,
      hasPolicies: objects.some(({ metadata }) => metadata.name === OF_AGENTS),
      objects: objects.map((each) => renamed(each, n, group)),
    };
  });
}

export function resourceOfVariant({ group }: LeaseVariant): Resource<AddressLease> {
  return { ...ADDRESS_LEASES, group };
}

function parts(crd: Manifest, policies: readonly PolicyPair[]): { title: string; objects: Manifest[] }[] {
  const without = (what: string, objects: Manifest[]) => ({ title: `without ${what}`, objects });
  const rules = rulesOf(crd).map((rule) =>
    without(`the rule ${shortened(rule)}`, [withoutRules(crd, (each) => each === rule), ...policies.flat()]),
  );
  const whole = policies.map((pair) =>
    without(`the policy ${pair[0].metadata.name}`, [crd, ...policies.filter((other) => other !== pair).flat()]),
  );
  const validations = policies.flatMap((pair) => {
    const { validations: list } = pair[0].spec as { validations: { expression: string }[] };
    return list.map((one) => {
      const rest = list.filter((other) => other !== one);
      const changed = { ...pair[0], spec: { ...(pair[0].spec as object), validations: rest } };
      const others = policies.filter((other) => other !== pair).flat();
      const objects = rest.length === 0 ? [crd, ...others] : [crd, changed, pair[1], ...others];
      return without(`${pair[0].metadata.name}: ${shortened(one.expression)}`, objects);
    });
  });
  return [...rules, ...whole, ...validations];
}

/** Returns the policies that see writes of leases. */
function policiesOf(shipped: readonly Manifest[]): PolicyPair[] {
  const policies = shipped.filter(
    (each) => each.kind === 'ValidatingAdmissionPolicy' && JSON.stringify(each).includes(`"${ADDRESS_LEASES.plural}"`),
  );
  return policies.map((policy) => {
    const isBinding = ({ kind, spec }: Manifest) =>
      kind === 'ValidatingAdmissionPolicyBinding' && (spec as BindingSpec).policyName === policy.metadata.name;
    return [policy, shipped.find(isBinding)!];
  });
}

function bare(crd: Manifest): Manifest {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const spec = crd.spec as { versions: { name: string }[] };
  const versions = [{ name: spec.versions[0]!.name, served: true, storage: true, schema }];
  return { ...crd, spec: { ...spec, versions } };
}

function rulesOf(value: unknown): string[] {
  const found: string[] = [];
  JSON.stringify(value, (key, each: unknown) => {
    if (key === RULES) found.push(...(each as { rule: string }[]).map(({ rule }) => rule));
    return each;
  });
  return [...new Set(found)];
}

function withoutRules(crd: Manifest, isLeftOut: (rule: string) => boolean): Manifest {
  const text = JSON.stringify(crd, (key, each: unknown) => {
    if (key !== RULES) return each;
    const kept = (each as { rule: string }[]).filter(({ rule }) => !isLeftOut(rule));
    return kept.length > 0 ? kept : undefined;
  });
  return JSON.parse(text) as Manifest;
}

/** Moves a kind, a policy or a binding to the variant's group. */
function renamed(object: Manifest, n: number, group: string): Manifest {
  const text = JSON.stringify(object).replaceAll(`"${GROUP}"`, `"${group}"`);
  const copy = JSON.parse(text) as Manifest & { spec: BindingSpec };
  if (copy.kind === 'CustomResourceDefinition')
    return { ...copy, metadata: { name: `${ADDRESS_LEASES.plural}.${group}` } };
  const { policyName } = copy.spec;
  const spec = policyName === undefined ? copy.spec : { ...copy.spec, policyName: `v${String(n)}-${policyName}` };
  return { ...copy, metadata: { name: `v${String(n)}-${copy.metadata.name}` }, spec };
}

function shortened(expression: string): string {
  const line = expression.replaceAll(/\s+/g, ' ');
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
}
