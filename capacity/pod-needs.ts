import { POD_NEEDS } from '../api/bounds.js';
import { isRecord, listOf, recordOf, textOf } from '../api/json.js';

/** Where a pod may run, as its spec says; what cannot be read says nothing. */
export interface PodNeeds {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Of the required node affinity: one of them must match; absent: any node does. */
  readonly terms?: readonly NodeTerms[];
  readonly tolerations: readonly Toleration[];
}

/** All of them must hold. */
export interface NodeTerms {
  readonly labels: readonly Requirement[];
  readonly fields: readonly Requirement[];
}

export interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** `''` where the pod says nothing. */
export interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
}

/** @returns undefined if there is more than is compared with each node: nobody looks for a node for such a pod */
export function readNeeds(spec: unknown): PodNeeds | undefined {
  const { nodeSelector, affinity, tolerations } = recordOf(spec);
  const required = recordOf(recordOf(affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution;
  const needs: PodNeeds = {
    nodeSelector: textsOf(nodeSelector),
    ...(isRecord(required) && { terms: listOf(required.nodeSelectorTerms).map(readTerms) }),
    tolerations: listOf(tolerations).map(readToleration),
  };
  return sizeOf(needs) > POD_NEEDS ? undefined : needs;
}

function sizeOf({ nodeSelector, terms = [], tolerations }: PodNeeds): number {
  const requirements = terms.flatMap(({ labels, fields }) => [...labels, ...fields]);
  const values = requirements.reduce((sum, requirement) => sum + requirement.values.length, 0);
  return Object.keys(nodeSelector).length + terms.length + requirements.length + values + tolerations.length;
}

function readTerms(term: unknown): NodeTerms {
  const { matchExpressions, matchFields } = recordOf(term);
  return { labels: listOf(matchExpressions).map(readRequirement), fields: listOf(matchFields).map(readRequirement) };
}

function readRequirement(requirement: unknown): Requirement {
  const { key, operator, values } = recordOf(requirement);
  return { key: textOf(key), operator: textOf(operator), values: listOf(values).map(textOf) };
}

function readToleration(toleration: unknown): Toleration {
  const { key, operator, value, effect } = recordOf(toleration);
  return { key: textOf(key), operator: textOf(operator) || 'Equal', value: textOf(value), effect: textOf(effect) };
}

function textsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(recordOf(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
