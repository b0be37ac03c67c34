import { join } from 'node:path';
import { readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

export interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly allValue?: string }[];
  };
}

export async function readDashboard(): Promise<Dashboard> {
  const [manifest] = await readManifests(join(MANIFESTS, 'components', 'prometheus-operator', 'dashboard.yaml'));
  const { data } = manifest as unknown as { data: Readonly<Record<string, string>> };
  return JSON.parse(data['holdfast.json'] ?? '') as Dashboard;
}

/** Each query with its panel, with the variables of the dashboard and of Grafana as they are when everything is chosen. */
export function queriesOf({ panels }: Dashboard): { panel: string; query: string }[] {
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ panel: title, query: queryOf(expr) })),
  );
}

/** A query with the variables of the dashboard and of Grafana as they are when everything is chosen. */
export function queryOf(expr: string): string {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$\w+/g, '.*');
}
