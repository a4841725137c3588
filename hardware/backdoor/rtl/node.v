// SPDX-License-Identifier: Apache-2.0 OR MIT
// Node: a processor with its own bus, on which are the store (its initial program, read-only), private
// memory, and a port to the shared window and bridge. An access to an unmapped address, or a write to the
// store, sets `wild`: the bus never answers it, so the processor stops.
`default_nettype none
module node #(
    parameter STORE_WORDS = 16384,
    parameter RAM_WORDS = 32768,
    parameter NAME = "near"
) (
    input  wire        clk,
    input  wire        resetn,
    output wire        trap,
    output reg         wild,
    output reg  [31:0] pc,      // address of the last fetch
    output wire [31:0] address, // address of the current access, or of the wild one
    output wire        out_valid,
    output wire [31:0] out_wdata,
    output wire [ 3:0] out_wstrb,
    input  wire        out_ready,
    input  wire [31:0] out_rdata
);
  reg [31:0] store[0:STORE_WORDS-1];
  reg [31:0] ram[0:RAM_WORDS-1];
  reg [8*512-1:0] file;
  initial begin
    if (!$value$plusargs({NAME, "=%s"}, file)) begin
      $display("the initial program of %s is missing: +%s=FILE", NAME, NAME);
      $finish;
    end
    $readmemh(file, store);
  end

  wire valid, instr;
  wire [31:0] addr, wdata;
  wire [3:0] wstrb;
  reg own_ready;
  reg [31:0] own_rdata;
  wire [27:0] offset = addr[27:0];
  wire in_store = addr[31:28] == 4'h0 && offset < 4 * STORE_WORDS && wstrb == 0;
  wire in_ram = addr[31:28] == 4'h1 && offset < 4 * RAM_WORDS;
  // Instructions are not fetched from the shared part: programs are copied before they run.
  wire out = !instr && (addr[31:28] == 4'h2 && offset < 65536 || addr[31:28] == 4'h3 && offset < 64);

  assign out_valid = valid && out;
  assign out_wdata = wdata;
  assign out_wstrb = wstrb;
  assign address   = addr;
  wire ready = own_ready || out_valid && out_ready;

  always @(posedge clk) begin
    own_ready <= 0;
    if (!resetn) wild <= 0;
    else if (valid && !ready) begin
      if (in_store) begin
        own_rdata <= store[offset[27:2]];
        own_ready <= 1;
      end else if (in_ram) begin
        own_rdata <= ram[offset[27:2]];
        own_ready <= 1;
        if (wstrb[0]) ram[offset[27:2]][7:0] <= wdata[7:0];
        if (wstrb[1]) ram[offset[27:2]][15:8] <= wdata[15:8];
        if (wstrb[2]) ram[offset[27:2]][23:16] <= wdata[23:16];
        if (wstrb[3]) ram[offset[27:2]][31:24] <= wdata[31:24];
      end else if (!out) wild <= 1;
      if (instr) pc <= addr;
    end
  end

  picorv32 #(
      .ENABLE_FAST_MUL(1),
      .ENABLE_DIV(1),
      .BARREL_SHIFTER(1),
      .PROGADDR_RESET(32'h0000_0000)
  ) core (
      .clk(clk),
      .resetn(resetn),
      .trap(trap),
      .mem_valid(valid),
      .mem_instr(instr),
      .mem_ready(ready),
      .mem_addr(addr),
      .mem_wdata(wdata),
      .mem_wstrb(wstrb),
      .mem_rdata(own_ready ? own_rdata : out_rdata),
      .pcpi_wr(1'b0),
      .pcpi_rd(32'b0),
      .pcpi_wait(1'b0),
      .pcpi_ready(1'b0),
      .irq(32'b0)
  );
endmodule
`default_nettype wire
