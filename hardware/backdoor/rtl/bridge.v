// SPDX-License-Identifier: Apache-2.0 OR MIT
// Bridge: a doorbell per direction, the reset of the far processor, and the record of its trouble, which
// rings the near side. The registers are described in ../bridge.h.
`default_nettype none
module bridge (
    input  wire        clk,
    input  wire        resetn,
    // Port of the near side.
    input  wire        near_valid,
    input  wire [ 5:0] near_addr,
    input  wire [31:0] near_wdata,
    input  wire        near_write,
    output reg         near_ready,
    output reg  [31:0] near_rdata,
    // Port of the far side.
    input  wire        far_valid,
    input  wire [ 5:0] far_addr,
    input  wire [31:0] far_wdata,
    input  wire        far_write,
    output reg         far_ready,
    output reg  [31:0] far_rdata,
    // The far processor.
    output wire        far_resetn,
    input  wire        far_trap,
    input  wire        far_wild,
    input  wire [31:0] far_pc,
    input  wire [31:0] far_address,
    // Output and end of the simulation.
    output reg         print,
    output reg  [ 7:0] letter,
    output reg         finished,
    output reg  [31:0] code
);
  localparam BELL = 6'h00, RUNG = 6'h04, AWAIT = 6'h08, CYCLES = 6'h0c, CYCLES_HIGH = 6'h10;
  localparam RUN = 6'h14, TROUBLE = 6'h18, PC = 6'h1c, VALUE = 6'h20, WATCH = 6'h24;
  localparam PRINT = 6'h28, FINISH = 6'h2c;
  localparam NONE = 0, TRAP = 1, WILD = 2, HUNG = 3;
  // Maximum number of cycles for which a read of AWAIT stalls.
  localparam PATIENCE = 1023;

  reg near_rung, far_rung, run;
  reg [1:0] trouble;
  reg [31:0] pc, value, watch, watched;
  reg [63:0] cycles;
  reg [9:0] near_waits, far_waits;

  // A hung processor is reset at once; after a trap or a wild access it has stopped by itself.
  assign far_resetn = run && trouble != HUNG;

  wire near_new = near_valid && !near_ready;
  wire far_new = far_valid && !far_ready;
  wire near_waiting = near_new && !near_write && near_addr == AWAIT && !near_rung && near_waits != PATIENCE;
  wire far_waiting = far_new && !far_write && far_addr == AWAIT && !far_rung && far_waits != PATIENCE;

  always @(posedge clk) begin
    cycles <= cycles + 1;
    print <= 0;
    near_ready <= near_new && !near_waiting;
    far_ready <= far_new && !far_waiting;
    near_waits <= near_waiting ? near_waits + 1 : 0;
    far_waits <= far_waiting ? far_waits + 1 : 0;

    // Clearing comes before setting, so that a ring in the same cycle is not lost.
    if (near_new && near_write)
      case (near_addr)
        RUNG: near_rung <= 0;
        RUN: begin
          run <= near_wdata[0];
          if (!near_wdata[0]) begin
            trouble <= NONE;
            far_rung <= 0;
          end
        end
        PRINT: begin
          print  <= 1;
          letter <= near_wdata[7:0];
        end
        FINISH: begin
          finished <= 1;
          code <= near_wdata;
        end
        default: ;
      endcase
    if (far_new && far_write)
      case (far_addr)
        RUNG: far_rung <= 0;
        WATCH: watch <= far_wdata;
        default: ;
      endcase
    if (near_new && near_write && near_addr == BELL && run) far_rung <= 1;
    if (far_new && far_write && far_addr == BELL) near_rung <= 1;

    case (near_addr)
      RUNG: near_rdata <= {31'b0, near_rung};
      AWAIT: near_rdata <= {31'b0, near_rung};
      CYCLES: near_rdata <= cycles[31:0];
      CYCLES_HIGH: near_rdata <= cycles[63:32];
      RUN: near_rdata <= {31'b0, run};
      TROUBLE: near_rdata <= {30'b0, trouble};
      PC: near_rdata <= pc;
      VALUE: near_rdata <= value;
      default: near_rdata <= 0;
    endcase
    case (far_addr)
      RUNG: far_rdata <= {31'b0, far_rung};
      AWAIT: far_rdata <= {31'b0, far_rung};
      CYCLES: far_rdata <= cycles[31:0];
      CYCLES_HIGH: far_rdata <= cycles[63:32];
      default: far_rdata <= 0;
    endcase

    // A processor that waits does not count as hung.
    watched <= watch == 0 || far_waiting ? 0 : watched + 1;
    if (far_resetn && trouble == NONE) begin
      if (far_trap || far_wild || watch != 0 && watched >= watch) begin
        trouble <= far_trap ? TRAP : far_wild ? WILD : HUNG;
        pc <= far_pc;
        value <= far_wild ? far_address : 0;
        near_rung <= 1;
      end
    end
    if (!far_resetn) watch <= 0;

    if (!resetn) begin
      {near_rung, far_rung, run, trouble} <= 0;
      {near_ready, far_ready, near_waits, far_waits} <= 0;
      {pc, value, watch, watched, cycles} <= 0;
      {print, letter, finished, code} <= 0;
    end
  end
endmodule
`default_nettype wire
