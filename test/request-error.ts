import { StatusError, TransportError } from '../kube/errors.js';

/** The error with which a request ends; a request that succeeds or fails otherwise fails the test. */
export async function requestErrorOf(answer: Promise<unknown>): Promise<StatusError | TransportError> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof StatusError || error instanceof TransportError) return error;
    throw error;
  }
  throw new Error('the request succeeded');
}

/** The fault of a TransportError, or the status of a StatusError. */
export async function faultOf(answer: Promise<unknown>): Promise<string> {
  const error = await requestErrorOf(answer);
  return error instanceof TransportError ? error.fault : String(error.status);
}
