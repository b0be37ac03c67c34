import { randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, basename } from 'node:path';
import { createInterface } from 'node:readline';

/** A command of QEMU's machine protocol: https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html. */
export interface QmpCommand {
  readonly execute: string;
  readonly arguments?: object;
}

interface Answer {
  readonly id?: string;
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

/**
 * Sends commands to the socket of QEMU or of its guest agent, one after the other.
 * @returns what each returned
 * @throws {Error} if one fails, or all together take too long: nobody reads what is sent to a guest that boots
 */
export async function executeOn(
  socket: string,
  commands: readonly QmpCommand[],
  timeoutMs = 10_000,
): Promise<unknown[]> {
  // the path of a socket has at most 107 bytes
  const folder = await open(dirname(socket));
  const connection = connect(`/proc/self/fd/${String(folder.fd)}/${basename(socket)}`);
  connection.setTimeout(timeoutMs, () => connection.destroy(new Error(`${socket} does not answer`)));
  const ended = new Promise<never>((_, reject) => {
    connection.once('error', reject);
    connection.once('close', () => reject(new Error(`${socket} was closed`)));
  });
  try {
    return await Promise.race([converse(connection, commands), ended]);
  } finally {
    connection.destroy();
    ended.catch(() => undefined);
    await folder.close();
  }
}

async function converse(connection: NodeJS.ReadWriteStream, commands: readonly QmpCommand[]): Promise<unknown[]> {
  const results: unknown[] = [];
  const waiting = [...commands];
  let id = send(connection, waiting.shift());
  for await (const line of createInterface({ input: connection })) {
    const answer = JSON.parse(line) as Answer;
    if (answer.id !== id) continue; // a greeting, an event, or for an earlier connection that did not wait
    if (answer.error) throw new Error(answer.error.desc);
    results.push(answer.return);
    if (waiting.length === 0) return results;
    id = send(connection, waiting.shift());
  }
  return results;
}

function send(connection: NodeJS.WritableStream, command: QmpCommand | undefined): string {
  const id = randomUUID();
  connection.write(JSON.stringify({ ...command, id }));
  return id;
}
