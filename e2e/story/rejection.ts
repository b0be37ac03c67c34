import { StatusError } from '../../kube/errors.js';

/** Waits for an attempt to be refused. @returns the words in which it was */
export async function rejectionMessage(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof StatusError && error.status >= 400 && error.status < 500) return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}
