import { MAX_POD_CONSTRAINTS } from '../api/limits.js';
import { isRecord, asList, asRecord, asString } from '../api/json.js';

/** The fields of a pod's spec that limit where it can run. Invalid fields are ignored. */
export interface SchedulingConstraints {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** The terms of the required node affinity. One of them must match; absent if every node matches. */
  readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
  readonly tolerations: readonly Toleration[];
}

/** All requirements must match. */
export interface NodeSelectorTerm {
  readonly labels: readonly NodeSelectorRequirement[];
  readonly fields: readonly NodeSelectorRequirement[];
}

export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** Fields are `''` if the pod does not set them. */
export interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
}

/** @returns undefined if the constraints are too large to compare with each node; such a pod gets no offer */
export function readSchedulingConstraints(spec: unknown): SchedulingConstraints | undefined {
  const { nodeSelector, affinity, tolerations } = asRecord(spec);
  const required = asRecord(asRecord(affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution;
  const constraints: SchedulingConstraints = {
    nodeSelector: stringValuesOf(nodeSelector),
    ...(isRecord(required) && { nodeSelectorTerms: asList(required.nodeSelectorTerms).map(readTerms) }),
    tolerations: asList(tolerations).map(readToleration),
  };
  return sizeOf(constraints) > MAX_POD_CONSTRAINTS ? undefined : constraints;
}

function sizeOf({ nodeSelector, nodeSelectorTerms = [], tolerations }: SchedulingConstraints): number {
  const requirements = nodeSelectorTerms.flatMap(({ labels, fields }) => [...labels, ...fields]);
  const values = requirements.reduce((sum, requirement) => sum + requirement.values.length, 0);
  return (
    Object.keys(nodeSelector).length + nodeSelectorTerms.length + requirements.length + values + tolerations.length
  );
}

function readTerms(term: unknown): NodeSelectorTerm {
  const { matchExpressions, matchFields } = asRecord(term);
  return { labels: asList(matchExpressions).map(readRequirement), fields: asList(matchFields).map(readRequirement) };
}

function readRequirement(requirement: unknown): NodeSelectorRequirement {
  const { key, operator, values } = asRecord(requirement);
  return { key: asString(key), operator: asString(operator), values: asList(values).map(asString) };
}

function readToleration(toleration: unknown): Toleration {
  const { key, operator, value, effect } = asRecord(toleration);
  return {
    key: asString(key),
    operator: asString(operator) || 'Equal',
    value: asString(value),
    effect: asString(effect),
  };
}

function stringValuesOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asRecord(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
