import { StatusError } from '../../kube/errors.js';

/** Expects a request to be rejected. @returns the message of the rejection */
export async function rejectionMessage(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof StatusError && error.status >= 400 && error.status < 500) return error.message;
    throw error;
  }
  throw new Error('the request was not rejected');
}
