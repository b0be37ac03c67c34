import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Manifest, readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

type PrometheusRule = Manifest & { readonly spec: { readonly groups: readonly { readonly rules: readonly Rule[] }[] } };

/** The shipped alerts, and the text of the file of rules that the Prometheus Operator makes of them. */
export async function readRules(): Promise<{ rules: readonly Rule[]; text: string }> {
  const [manifest] = await readManifests(join(MANIFESTS, 'components', 'prometheus-operator', 'rules.yaml'));
  const { groups } = (manifest as PrometheusRule).spec;
  return { rules: groups.flatMap(({ rules }) => rules), text: stringify({ groups }) };
}
