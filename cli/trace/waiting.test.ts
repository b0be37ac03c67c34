import { CLAIM_CONDITIONS } from '../../api/conditions.js';
import { EVENT_REASONS } from '../../api/event-reasons.js';
import { STOPPED, type StoryCase, claimWithCondition, describeStories, eventOn } from '../testing/vm-story.js';

const MESSAGE = 'what happened, and what to do';

/** Each reason of a condition that needs somebody to act. */
const OF_CONDITIONS = CLAIM_CONDITIONS.flatMap((row): StoryCase[] => {
  if (!('health' in row)) return [];
  const { type, status, health } = row;
  return row.reasons.map((reason) => ({
    title: `a claim whose condition ${type} is ${status} because of ${reason}`,
    given: { ...STOPPED, claims: [claimWithCondition([type, status, reason, MESSAGE])] },
    health,
    includes: [`${health} ${reason}: ${MESSAGE}`],
  }));
});

const { NetworkNotServed, ClaimLimit, ClaimQuota, ClaimDelayed, ClaimRefused, ForeignClaim } = EVENT_REASONS;

/** Each event that says why a network has no claim. */
const OF_EVENTS = [NetworkNotServed, ClaimLimit, ClaimQuota, ClaimDelayed, ClaimRefused, ForeignClaim].map(
  ({ reason }): StoryCase => ({
    title: `a VM with the event ${reason}`,
    given: { ...STOPPED, claims: [], leases: [], events: [eventOn('vm1', reason, `Network "data": ${MESSAGE}`)] },
    health: 'wrong',
    includes: [`wrong ${reason}: Network "data": ${MESSAGE}`],
  }),
);

describeStories('the kinds of waiting', [...OF_CONDITIONS, ...OF_EVENTS]);
