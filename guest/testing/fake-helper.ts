import { type Server, type Socket, createServer } from 'node:net';

export const HELLO = { hello: { v: 2, mac: '02:00:00:00:00:01', address: false } };

/** Accepts connections in place of holdfast-packets. */
export class FakeHelper {
  /** But for those about freshness. */
  readonly received: Record<string, unknown>[] = [];
  /** How long its tables are fresh, with the number of commands before. */
  readonly fresh: [forMs: number, after: number][] = [];
  /** The ids of the sets of options that it has. */
  readonly optionSets = new Set<string>();
  mostOptionSets = 0;
  connections = 0;
  /** The answer to a configuration; undefined: none. */
  answer: unknown = HELLO;
  #server: Server | undefined;
  #current: Socket | undefined;

  async start(path: string): Promise<void> {
    this.#server = createServer((socket) => this.#serve(socket));
    await new Promise<void>((resolve) => this.#server?.listen(path, resolve));
  }

  write(text: string): void {
    this.#current?.write(text);
  }

  /** Ends the connection, as a helper that is killed. */
  drop(): void {
    this.#current?.destroy();
  }

  async stop(): Promise<void> {
    this.drop();
    await new Promise<void>((resolve) =>
      this.#server === undefined ? resolve() : this.#server.close(() => resolve()),
    );
  }

  kinds(): string[] {
    return this.received.flatMap(Object.keys);
  }

  #serve(socket: Socket): void {
    this.connections++;
    this.#current = socket;
    let pending = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      const lines = (pending + chunk.toString()).split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) {
        const command = JSON.parse(line) as Record<string, unknown>;
        if ('fresh' in command) this.fresh.push([(command.fresh as { forMs: number }).forMs, this.received.length]);
        else this.received.push(command);
        if ('options' in command) this.optionSets.add((command.options as { id: string }).id);
        if ('forget' in command) for (const id of command.forget as string[]) this.optionSets.delete(id);
        this.mostOptionSets = Math.max(this.mostOptionSets, this.optionSets.size);
        if ('config' in command && this.answer !== undefined) socket.write(`${JSON.stringify(this.answer)}\n`);
      }
    });
  }
}
