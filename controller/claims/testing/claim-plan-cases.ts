import { expect } from 'chai';
import type { Action, WorkloadEvent } from '../plan/action.js';
import { plan } from '../plan/plan.js';
import { type WorkloadScenario, observationOf } from './workload-observation.js';

/** One line for each action: what, which claim, and for whom or why in short. */
function summary(action: Action): string {
  switch (action.kind) {
    case 'create':
      return `create ${action.claim.metadata.name} for ${action.claim.metadata.ownerReferences?.[0]?.uid ?? ''}`;
    case 'update':
      return `update ${action.claim.metadata.name} for ${action.owner.uid}: ${Object.keys(action.set).sort().join(' ')}`;
    case 'release':
      return `release ${action.claim.metadata.name}${action.successor ? ', then create it' : ''}${eventText(action.event)}`;
    case 'keep':
      return `keep ${action.claim.metadata.name}`;
    case 'wait':
      return `wait for ${action.claimName}${eventText(action.event)}`;
    case 'refuse':
      return `refuse${eventText(action.event).replace(',', '')}`;
  }
}

function eventText(event: WorkloadEvent | undefined): string {
  if (event === undefined) return '';
  const { reason, regarding } = event;
  if (typeof regarding !== 'object') return `, ${reason} on ${regarding}`;
  return `, ${reason} on the claim${'claimAndOwner' in regarding ? ' and its owner' : ''}`;
}

export interface ClaimPlanCase {
  name: string;
  given: WorkloadScenario;
  expect: string[];
}

/** One test for each row: what is given, and the actions that follow. */
export function itPlansClaims(rows: ClaimPlanCase[]): void {
  for (const row of rows) {
    it(row.name, () => {
      expect(plan(observationOf(row.given)).map(summary)).to.deep.equal(row.expect);
    });
  }
}
