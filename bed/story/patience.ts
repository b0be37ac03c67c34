import { messageOf } from '../../kube/errors.js';
import { type WaitOptions, until } from '../processes/wait.js';

/** Retries while the API server is down. An attempt without an answer may have succeeded: then there is no result. */
export async function patiently<T>(attempt: () => Promise<T>, options: WaitOptions = {}): Promise<T> {
  const { result } = await until(
    'the API server to accept it',
    async () => {
      try {
        return { result: await attempt() };
      } catch (error) {
        if (error instanceof Error && error.message.includes('already exists')) return { result: undefined as T };
        throw error;
      }
    },
    options,
  );
  return result;
}

/** Repeats a request while its webhook does not answer in time, as on a busy machine. Every other error is the answer. */
export async function admitted<T>(attempt: () => Promise<T>): Promise<T> {
  const answered = await until('the webhook to answer', async () => {
    try {
      return { result: await attempt() };
    } catch (error) {
      if (messageOf(error).includes('failed calling webhook')) throw error;
      return { error };
    }
  });
  if ('error' in answered) throw answered.error;
  return answered.result;
}
