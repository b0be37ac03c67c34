import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { PLUGIN_FILE } from '../network/open-pod-networks.js';
import type { RunningCommand, Wire, WireLocation } from '../network/wire.js';
import { capture } from '../processes/processes.js';
import { until } from '../processes/wait.js';

const PROGRAM = PLUGIN_FILE.replace('holdfast-', 'holdfast-packets-');
const BINARY = join(import.meta.dirname, '..', '..', 'dist', 'packets', PROGRAM);

/** Compiles the generated guests, `guest/packets/guests.go`. @returns the path of the program */
export async function buildGeneratedGuests(folder: string): Promise<string> {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const build = join(import.meta.dirname, '..', '..', 'guest', 'packets', 'build.js');
  await capture(process.execPath, [build, 'guests', folder, architecture]);
  return join(folder, `guests-linux-${architecture}`);
}

/** Starts holdfast-packets in a network namespace, and waits until a responder can connect. */
export async function startPackets(wire: Wire, location: WireLocation, socket: string): Promise<RunningCommand> {
  const running = await wire.start(location, { command: BINARY, args: [`--socket=${socket}`] });
  await until('holdfast-packets to listen', () => running.output.stderr.includes('listening'));
  return running;
}

/** Sends a table to holdfast-packets in place of a responder, for tests without one. */
export class PacketTable {
  /** Lines of JSON from holdfast-packets. */
  reports = '';
  readonly #connection: Socket;
  #config: object | undefined;
  #configs = 0;

  private constructor(connection: Socket) {
    this.#connection = connection;
  }

  static async connect(socket: string): Promise<PacketTable> {
    const connection = connect(socket);
    await once(connection, 'connect');
    connection.on('error', () => undefined); // it ends with holdfast-packets
    const table = new PacketTable(connection.setEncoding('utf8'));
    connection.on('data', (text: string) => (table.reports += text));
    return table;
  }

  /** @see guest/packets/protocol.go */
  send(...commands: object[]): void {
    for (const command of commands) {
      if ('config' in command) {
        this.#config = command;
        this.#configs++;
      }
      this.#connection.write(`${JSON.stringify(command)}\n`);
    }
  }

  /** Sends commands, and waits until they are obeyed: commands are obeyed in turn, and each config is greeted. */
  async apply(...commands: object[]): Promise<void> {
    this.send(...commands);
    if (this.#config === undefined) throw new Error('no config was sent');
    this.send(this.#config);
    await until('holdfast-packets to obey', () => this.reports.split('"hello"').length > this.#configs);
  }
}
