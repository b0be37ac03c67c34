import { asString, truncate } from '../api/json.js';
import type { Event, EventType } from '../kube/events.js';

/** The longest message that the API server accepts in an Event of the newer API. */
const MAX_MESSAGE_LENGTH = 1_024;
const MAX_NAME_LENGTH = 253;

/**
 * Returns an event with all its texts, none of them long. Tenants may write events: the API server accepts those without type, reason, message or
 * name of their object, and with texts of a megabyte.
 */
export function readEvent(event: Event): Event {
  const { kind, name } = event.involvedObject;
  const involvedObject = { ...event.involvedObject, kind: nameOf(kind), name: nameOf(name) };
  const message = truncate(asString(event.message), MAX_MESSAGE_LENGTH);
  return { ...event, involvedObject, type: nameOf(event.type) as EventType, reason: nameOf(event.reason), message };
}

function nameOf(text: unknown): string {
  return truncate(asString(text), MAX_NAME_LENGTH);
}
